// Opened from disk, a page may not read its neighbours: the search then lists what it finds without quoting it.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
