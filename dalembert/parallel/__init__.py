"""Parts of a computation on threads, process pools and Dask clusters."""
