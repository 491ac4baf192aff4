// Links that lead to parts of the page become tabs. The address names the open part, so it can be sent to others.

function makeTabs(strip, label, chosen) {
  const tabs = all("a", strip);
  const panels = tabs.map((tab) => document.getElementById(tab.hash.slice(1)));
  strip.setAttribute("role", "tablist");
  strip.setAttribute("aria-label", label);
  tabs.forEach((tab, k) => {
    tab.id = `tab-${panels[k].id}`;
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", panels[k].id);
    panels[k].setAttribute("role", "tabpanel");
    panels[k].setAttribute("aria-labelledby", tab.id);
    panels[k].removeAttribute("aria-label");
    panels[k].tabIndex = -1;
  });
  const select = (k) => {
    tabs.forEach((tab, i) => {
      tab.setAttribute("aria-selected", String(i === k));
      tab.tabIndex = i === k ? 0 : -1;
      panels[i].hidden = i !== k;
    });
    // Only the strip may move: the page must not jump because a tab was out of sight.
    strip.scrollLeft = clamp(strip.scrollLeft, tabs[k].offsetLeft + tabs[k].offsetWidth - strip.clientWidth, tabs[k].offsetLeft);
  };
  strip.addEventListener("click", (event) => {
    const k = tabs.indexOf(event.target.closest("a"));
    if (k < 0) return;
    event.preventDefault();
    chosen(panels[k].id, true);
  });
  strip.addEventListener("keydown", (event) => {
    const here = tabs.indexOf(document.activeElement);
    const steps = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: tabs.length - 1, " ": here };
    if (here < 0 || !(event.key in steps)) return;
    event.preventDefault();
    const k = (steps[event.key] + tabs.length) % tabs.length;
    chosen(panels[k].id, false);
    tabs[k].focus({ preventScroll: true });
  });
  return { names: panels.map((panel) => panel.id), select };
}

function startTabs() {
  const go = (name, push) => {
    if (push && `#${name}` !== location.hash) history.pushState(null, "", `#${name}`);
    else history.replaceState(null, "", `#${name}`);
    open(name);
    // Deep in a long part, the next one starts at its beginning.
    const bar = find(".tabs");
    if (bar.getBoundingClientRect().top <= 0) scrollTo(0, find(".masthead").offsetHeight);
  };
  const main = makeTabs(find(".tabs .strip"), "Parts of the report", go);
  const strip = find(".subtabs");
  const pages = strip ? makeTabs(strip, "Finalists", go) : null;
  const open = (name) => {
    const page = pages ? pages.names.indexOf(name) : -1;
    const k = page >= 0 ? main.names.indexOf("finalists") : main.names.indexOf(name);
    if (k >= 0) {
      main.select(k);
      document.documentElement.dataset.part = main.names[k];
      document.documentElement.dataset.first = String(k === 0); // there the masthead tells all, elsewhere it makes room
    }
    if (page >= 0) pages.select(page);
    return k >= 0;
  };
  if (pages) pages.select(0);
  open(main.names[0]);
  const follow = () => {
    if (open(location.hash.slice(1))) document.getElementById(location.hash.slice(1)).scrollIntoView();
  };
  if (location.hash) follow();
  addEventListener("hashchange", follow);
  addEventListener("popstate", () => open(location.hash.slice(1) || main.names[0]));
}
