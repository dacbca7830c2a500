// Parts of the page that are made once and whose texts are changed in place: tiles, tables, bars.

const byId = (id) => document.getElementById(id);

function element(tag, parent, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  parent?.append(made);
  return made;
}

/** Set a text where it is another one, so that selections and screen readers are left alone. */
function put(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Show figures by name as tiles: those that are gone go, those that are new come. */
class Tiles {
  constructor(list) {
    this.list = list;
    this.shown = new Map();
  }

  draw(figures) {
    const names = figures.map(([name]) => name);
    for (const [name, { box }] of this.shown) {
      if (names.includes(name)) continue;
      box.remove();
      this.shown.delete(name);
    }
    for (const [name, value, note = ""] of figures) {
      if (!this.shown.has(name)) this.shown.set(name, this.made(name));
      const { box, shown, beside } = this.shown.get(name);
      put(shown, value);
      put(beside, note);
      this.list.append(box);
    }
  }

  made(name) {
    const box = element("div", null);
    element("dt", box, name);
    const value = element("dd", box);
    return { box, shown: element("span", value), beside: element("small", value) };
  }
}

/** A table with a caption whose cells are changed in place; columns: title and kind, "number" or "text". */
class Table {
  constructor(parent, caption, columns, className = "") {
    this.parent = parent;
    this.columns = columns;
    this.table = element("table", null, undefined, className);
    element("caption", this.table, caption);
    this.body = element("tbody", null);
    if (columns.some(([title]) => title)) {
      const row = element("tr", element("thead", this.table));
      for (const [title, kind] of columns) element("th", row, title, kind).scope = "col";
    }
    this.table.append(this.body);
    this.wide = element("div", null, undefined, "wide");
    this.wide.append(this.table);
    this.note = element("p", null, "", "quiet");
  }

  /** Show rows of texts, the first of each the header; none: no table. */
  draw(rows, most = 100) {
    if (!rows.length) {
      this.wide.remove();
      this.note.remove();
      return;
    }
    const shown = rows.slice(0, most);
    while (this.body.rows.length > shown.length) this.body.deleteRow(-1);
    shown.forEach((row, place) => this.fill(this.body.rows[place] ?? this.added(), row));
    put(this.note, rows.length > most ? `and ${whole(rows.length - most)} more, in api/status` : "");
    if (!this.wide.isConnected) this.parent.append(this.wide, this.note);
  }

  added() {
    const row = element("tr", this.body);
    this.columns.forEach(([title, kind], place) => {
      const cell = element(place ? "td" : "th", row, "", kind);
      if (!place) cell.scope = "row";
      cell.dataset.title = title;
      element(kind === "code" ? "code" : kind === "link" ? "a" : "bdi", cell);
    });
    return row;
  }

  fill(row, texts) {
    texts.forEach((text, place) => {
      const [inner] = row.cells[place].children;
      if (typeof text === "object") {
        put(inner, text.text);
        if (text.href) inner.href = text.href;
        row.cells[place].title = text.title ?? "";
      } else put(inner, text);
    });
  }
}

/** A table of shares, each with a bar from 0 to 100% beside its number; a page of the documentation may explain them. */
class Bars {
  constructor(parent, caption, title, color, explained) {
    this.table = new Table(parent, caption, [[title, "text"], ["0 to 100%", "bar"], ["share", "number"]], "bars");
    this.table.table.dataset.color = color;
    if (!explained) return;
    const link = element("a", this.table.table.caption, "what they are");
    [link.href, link.target, link.rel] = [explained, "_blank", "noopener noreferrer"];
  }

  /** Show the largest shares, the largest first, or all in their order. */
  draw(given, most = Infinity) {
    const shares = most < Infinity ? [...given].sort(([, one], [, other]) => (other || 0) - (one || 0)) : given;
    this.table.draw(shares.map(([name, value]) => [{ text: visible(name, 60), title: visible(name) }, "", share(value)]), most);
    shares.slice(0, this.table.body.rows.length).forEach(([, value], place) => {
      const cell = this.table.body.rows[place].cells[1];
      cell.setAttribute("aria-hidden", "true");
      cell.firstElementChild.style.width = `${100 * Math.min(1, Math.max(0, value || 0))}%`;
    });
  }
}
