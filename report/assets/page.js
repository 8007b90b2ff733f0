// Sorts tables by the column whose header is pressed: numbers from the greatest, words from A; pressed again, the other way round.
"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const headers = [...table.tHead.rows[0].cells];
  const words = new Intl.Collator(undefined, { numeric: true });
  headers.forEach((header, column) => {
    const isNumber = header.classList.contains("number");
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.append(button);
    button.addEventListener("click", () => {
      const first = isNumber ? "descending" : "ascending";
      const second = isNumber ? "ascending" : "descending";
      const order = header.getAttribute("aria-sort") === first ? second : first;
      headers.forEach((other) => other.removeAttribute("aria-sort"));
      header.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const key = (row) => row.cells[column].dataset.value;
      const rows = [...body.rows].sort((a, b) => {
        if (!isNumber) return sign * words.compare(a.cells[column].textContent, b.cells[column].textContent);
        // What is not known stays at the end.
        const [x, y] = [key(a), key(b)];
        if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
        return sign * (Number(x) - Number(y));
      });
      body.append(...rows);
    });
  });
}
// A printed page has all of its tables.
addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details:not([open])")) {
    folded.open = true;
    folded.dataset.printed = "";
  }
});
addEventListener("afterprint", () => {
  for (const unfolded of document.querySelectorAll("details[data-printed]")) {
    unfolded.open = false;
    delete unfolded.dataset.printed;
  }
});
