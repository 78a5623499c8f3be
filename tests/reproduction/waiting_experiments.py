"""An experiment that is done at once, and two that wait."""

from toy_experiments import toy, wait

quick = toy("quick")
slow = toy("slow", wait)
later = toy("later", wait)
