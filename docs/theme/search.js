// Search over headings and names, the menu of narrow screens. No dependencies; works from file://.
(function () {
  "use strict";
  var input = document.getElementById("search");
  var list = document.getElementById("found");
  var menu = document.getElementById("menu");
  var chosen = -1;

  menu.addEventListener("click", function () {
    var open = document.body.classList.toggle("menu-open");
    menu.setAttribute("aria-expanded", String(open));
  });

  // Every word must occur; names that begin with the query come first, then headings of pages, then short ones.
  function find(query) {
    var words = query.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return [];
    var hits = [];
    window.SEARCH_INDEX.forEach(function (entry) {
      var text = entry.text.toLowerCase();
      if (!words.every(function (word) { return text.includes(word) || entry.page.toLowerCase().includes(word); })) return;
      var name = text.split(".").pop();
      var rank = name.startsWith(words[0]) ? 0 : text.includes(words[0]) ? 1 : 2;
      hits.push({ entry: entry, rank: rank + text.length / 1000 });
    });
    hits.sort(function (a, b) { return a.rank - b.rank; });
    return hits.slice(0, 12).map(function (hit) { return hit.entry; });
  }

  function show() {
    var hits = find(input.value);
    list.replaceChildren();
    hits.forEach(function (entry, i) {
      var item = document.createElement("li");
      item.setAttribute("role", "option");
      item.id = "found-" + i;
      var link = document.createElement("a");
      link.href = entry.href;
      link.tabIndex = -1;
      link.textContent = entry.text;
      var page = document.createElement("small");
      page.textContent = entry.page;
      link.append(page);
      item.append(link);
      list.append(item);
    });
    if (!hits.length && input.value.trim()) {
      var none = document.createElement("li");
      none.className = "none";
      none.textContent = "Nothing found";
      list.append(none);
    }
    list.hidden = !input.value.trim();
    input.setAttribute("aria-expanded", String(!list.hidden));
    choose(hits.length ? 0 : -1);
  }

  function choose(position) {
    var items = list.querySelectorAll("[role=option]");
    chosen = items.length ? (position + items.length) % items.length : -1;
    items.forEach(function (item, i) { item.setAttribute("aria-selected", String(i === chosen)); });
    if (chosen >= 0) {
      input.setAttribute("aria-activedescendant", items[chosen].id);
      items[chosen].scrollIntoView({ block: "nearest" });
    } else {
      input.removeAttribute("aria-activedescendant");
    }
  }

  function close() {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
  }

  input.addEventListener("input", show);
  input.addEventListener("focus", function () { if (input.value.trim()) show(); });
  input.addEventListener("keydown", function (event) {
    var items = list.querySelectorAll("[role=option]");
    if (event.key === "ArrowDown") { event.preventDefault(); choose(chosen + 1); }
    else if (event.key === "ArrowUp") { event.preventDefault(); choose(chosen - 1); }
    else if (event.key === "Enter" && items[chosen]) { event.preventDefault(); close(); location.href = items[chosen].firstChild.href; }
    else if (event.key === "Escape") { close(); }
  });
  document.addEventListener("keydown", function (event) {
    if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) {
      event.preventDefault();
      input.focus();
    }
  });
  document.addEventListener("click", function (event) {
    if (!event.target.closest(".search")) close();
  });
})();
