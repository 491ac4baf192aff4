// Start: what needs a script becomes visible, and the parts come alive.

function startTheme(button) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const now = () => document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light");
  // The button says what it does.
  const show = () => {
    button.textContent = now() === "dark" ? "Light" : "Dark";
  };
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = now() === "dark" ? "light" : "dark";
    show();
  });
  dark.addEventListener("change", show);
  show();
}

function startCopying(button) {
  button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copies);
    try {
      await navigator.clipboard.writeText(source.textContent);
      say("Copied");
      button.textContent = "Copied";
    } catch {
      // Pages opened from a file may not use the clipboard: select the text, so that one keystroke copies it.
      getSelection().selectAllChildren(source);
      button.textContent = "Selected";
    }
  });
}

document.documentElement.classList.add("scripted");
const run = JSON.parse(find("#run").textContent);
startTheme(find("#theme"));
startTabs();
all("[data-sortable]").forEach(startSorting);
all("[data-filters]").forEach(startFilter);
all("[data-copies]").forEach(startCopying);
startFigures(run.figures);
if (run.decide) startDecide(run.decide);
if (run.choices) startChoices(run.choices);
