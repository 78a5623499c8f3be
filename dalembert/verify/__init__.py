"""Checks"""
