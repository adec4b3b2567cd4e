// Charts of the console's pages. uPlot draws them from the table below them, which pages without scripts show in their
// place: its head names the chart and the ink of each column, its rows the times of their buckets.

/** @typedef {import("./vendor/uplot.js")} Plot */
/** @typedef {import("./vendor/uplot.js").Series} Series */
/** @typedef {import("./vendor/uplot.js").Options} Options */
/** A row of the table. @typedef {{ label: string, seconds: number, open: boolean, texts: string[] }} Bucket */
/** A column of the table. @typedef {{ name: string, ink: string, texts: string[], values: (number | null)[] }} Column */

const PLOT_HEIGHT = 180;
const POINT_PIXELS = 6;
const HATCH_PIXELS = 6;
const FREE_PIXELS = 6;
const LABEL_PIXELS = 20;
const AXIS_PIXELS = 52;
const LETTER_PIXELS = 7;
const TICK_PIXELS = 16;
const INK_PIXELS = 14;
const LINE_PIXELS = 16;
/** Forms of charts whose columns are lines. */
const LINE_FORMS = new Set(["log", "share", "left"]);
const DAY_SECONDS = 86_400;
/** Ink -> width of its line, and its dashes. */
const LINES = /** @type {Record<string, { width: number, dash?: number[] } | undefined>} */ ({
  p50: { width: 1 },
  p95: { width: 3 },
  projected: { width: 2, dash: [6, 4] },
  soft: { width: 1, dash: [2, 3] },
  hard: { width: 1 },
});
const USUAL_LINE = { width: 2 };
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", timeZone: "UTC" });
const calendar = new Intl.DateTimeFormat("en-GB", { day: "2-digit", month: "short", timeZone: "UTC" });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const library = /** @type {typeof import("./vendor/uplot.js")} */ (/** @type {any} */ (globalThis)["uPlot"]);
const drawn = /** @type {Set<DrawnChart>} */ (new Set());

/**
 * Return an element with a class and a text.
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {string} [kind]
 * @param {string} [text]
 */
function made(name, kind = "", text = "") {
  const element = document.createElement(name);
  element.className = kind;
  element.textContent = text;
  return element;
}

/**
 * Return whether a value has another one before or after it.
 * @param {(number | null)[]} values
 * @param {number} row
 */
function isNear(values, row) {
  return (values[row - 1] ?? null) !== null || (values[row + 1] ?? null) !== null;
}

/**
 * Return the powers of ten of an axis.
 * @param {Plot} _plot
 * @param {(number | null)[]} splits
 */
function decades(_plot, splits) {
  return splits.map((value) => (value !== null && Number.isInteger(Math.log10(value)) ? value : null));
}

/** Group of charts with their table. */
class ChartTable {
  /** @param {HTMLElement} group */
  constructor(group) {
    this.group = group;
    this.buckets = [...group.querySelectorAll("tbody tr")].map((row) => bucketOf(/** @type {HTMLElement} */ (row)));
    this.heads = /** @type {HTMLElement[]} */ ([...group.querySelectorAll("th[data-ink]")]);
    this.end = Number(group.dataset["end"]);
  }

  /**
   * Return the columns of a chart by its number.
   * @param {number} number
   */
  columns(number) {
    return this.heads.flatMap((head, place) => {
      if (head.dataset["chart"] !== String(number)) return [];
      const texts = this.buckets.map((bucket) => bucket.texts[place] ?? "");
      const values = texts.map((text) => numberOf(text));
      return [{ name: head.textContent?.trim() ?? "", ink: head.dataset["ink"] ?? "", texts, values }];
    });
  }

  /**
   * Return the address of the calls of a bucket; "" for none.
   * @param {number} place
   */
  address(place) {
    const path = this.group.dataset["path"];
    if (!path) return "";
    const target = new URL(path, location.href);
    target.searchParams.set("since", moment(this.buckets[place]?.seconds ?? 0));
    target.searchParams.set("until", moment(this.buckets[place + 1]?.seconds ?? this.end));
    return target.href;
  }
}

/** One chart. */
class DrawnChart {
  /**
   * @param {HTMLElement} figure
   * @param {ChartTable} table
   * @param {Column[]} columns
   */
  constructor(figure, table, columns) {
    this.figure = figure;
    this.table = table;
    this.columns = columns;
    this.form = figure.dataset["form"] ?? "";
    this.isStack = this.form === "stack";
    this.place = -1;
    this.room = /** @type {HTMLElement} */ (figure.querySelector(".plot"));
    this.tip = made("div", "tip");
    this.tip.hidden = true;
    this.inks = columns.map((column) => made("i", `ink ${column.ink}`));
    this.plot = /** @type {Plot | null} */ (null);
    this.names = this.legend();
    figure.append(this.names, this.tip);
    this.listen();
    this.draw();
    this.sizes = new ResizeObserver(() => this.plot?.setSize({ width: this.room.clientWidth, height: PLOT_HEIGHT }));
    this.sizes.observe(this.room);
  }

  legend() {
    const list = made("ul", "legend");
    this.columns.forEach((column, place) => {
      const item = made("li");
      item.append(/** @type {Node} */ (this.inks[place]), column.name);
      list.append(item);
    });
    return list;
  }

  /** Pixels that the names of lines take beside the chart. */
  get namePixels() {
    return INK_PIXELS + FREE_PIXELS + LETTER_PIXELS * Math.max(...this.columns.map((column) => column.name.length));
  }

  /** Whether each line has its name at its end, in place of the legend: where there is room for it. */
  get hasNamedEnds() {
    const isDrawn = this.columns.every((column) => column.values.some((value) => value !== null));
    return LINE_FORMS.has(this.form) && isDrawn && this.namePixels <= this.room.clientWidth / 4;
  }

  /**
   * Write the name of each line at its end, each below the one above it.
   * @param {Plot} plot
   */
  nameEnds(plot) {
    for (const former of plot.over.querySelectorAll(".line-end")) former.remove();
    this.names.hidden = this.hasNamedEnds;
    if (!this.hasNamedEnds) return;
    const ends = this.columns.map(({ name, values }, place) => {
      const row = values.findLastIndex((value) => value !== null);
      const label = made("span", "line-end");
      label.append(/** @type {Node} */ (this.inks[place]?.cloneNode()), name);
      const top = plot.valToPos(values[row] ?? 0, "y") - LINE_PIXELS / 2;
      return { label, top, left: plot.valToPos(this.table.buckets[row]?.seconds ?? 0, "x") + FREE_PIXELS };
    });
    ends.sort((one, other) => one.top - other.top);
    let free = plot.over.clientHeight - LINE_PIXELS * ends.length;
    let above = -LINE_PIXELS;
    for (const { label, top, left } of ends) {
      above = Math.max(above + LINE_PIXELS, Math.min(top, free));
      free += LINE_PIXELS;
      label.style.left = `${left}px`;
      label.style.top = `${above}px`;
      plot.over.append(label);
    }
  }

  /** Colours come from the style of the page, and are read again when they change. */
  draw() {
    this.plot?.destroy();
    this.colours = this.inks.map((ink) => getComputedStyle(ink).backgroundColor);
    this.plot = new library(this.options(), this.data(), this.room);
  }

  end() {
    this.sizes.disconnect();
    this.plot?.destroy();
  }

  /** @returns {import("./vendor/uplot.js").AlignedData} */
  data() {
    const times = this.table.buckets.map((bucket) => bucket.seconds);
    const tops = this.columns.map((column, place) =>
      column.values.map((value, row) => {
        if (this.isStack) return this.sum(row, place + 1);
        return column.ink === "failed" && value !== null ? -value : value;
      }),
    );
    return [times, ...tops];
  }

  /**
   * Return the sum of the first columns in a row.
   * @param {number} row
   * @param {number} count
   */
  sum(row, count = this.columns.length) {
    return this.columns.slice(0, count).reduce((sum, column) => sum + (column.values[row] ?? 0), 0);
  }

  /** @returns {Options} */
  options() {
    const style = getComputedStyle(this.room);
    const axis = { stroke: style.color, font: `12px ${style.fontFamily}`, grid: { stroke: colour("--line"), width: 1 } };
    const first = this.table.buckets[0]?.seconds ?? 0;
    return {
      width: this.room.clientWidth,
      height: PLOT_HEIGHT,
      padding: [FREE_PIXELS, () => (this.hasNamedEnds ? this.namePixels : LABEL_PIXELS), 0, 0],
      tzDate: (seconds) => library.tzDate(new Date(seconds * 1000), "Etc/UTC"),
      legend: { show: false },
      cursor: {
        y: false,
        points: { show: false },
        drag: { x: false, y: false },
        dataIdx: (plot, _series, closest, value) => ((plot.data[0][closest] ?? 0) > value ? Math.max(0, closest - 1) : closest),
      },
      scales: { x: { range: [first, this.table.end] }, y: this.scale() },
      axes: [
        { ...axis, size: 28, grid: { show: false }, values: (_plot, splits, _axis, _space, step) => splits.map((time) => timeLabel(time, step)) },
        { ...axis, ...(this.form === "log" && { filter: decades, grid: { ...axis.grid, filter: decades }, ticks: { filter: decades } }), size: (_plot, labels) => axisPixels(labels ?? []), values: (_plot, splits) => splits.map((value) => (value === null ? "" : compact.format(Math.abs(value)))) },
      ],
      series: [{}, ...this.columns.map((column, place) => this.series(column, place))],
      hooks: { draw: [(plot) => this.nameEnds(plot)], setCursor: [(plot) => this.show(plot.cursor.idxs?.[1] ?? plot.cursor.idx ?? -1)] },
    };
  }

  /** @returns {import("./vendor/uplot.js").Scale} */
  scale() {
    if (this.form === "log") return { distr: 3 };
    if (this.form === "share") return { range: [0, 100] };
    return { range: (_plot, least, most) => [Math.min(0, least) * 1.05, Math.max(most, 0) * 1.05 || 1] };
  }

  /**
   * @param {Column} column
   * @param {number} place
   * @returns {Series}
   */
  series(column, place) {
    const stroke = this.colours?.[place] ?? "";
    if (this.form === "columns" || this.isStack) return this.bars(column, place, stroke);
    const fill = column.ink === "left" ? hatched(stroke, 0.4) : undefined;
    const alone = column.values.flatMap((value, row) => (value !== null && !isNear(column.values, row) ? [row] : []));
    const points = { size: POINT_PIXELS, fill: stroke, filter: () => alone }; // of values that no line leads to
    return { stroke, ...(LINES[column.ink] ?? USUAL_LINE), points, ...(fill && { fill }) };
  }

  /**
   * Return bars of which those of other groups, and of a bucket that has not ended, are hatched.
   * @param {Column} column
   * @param {number} place
   * @param {string} stroke
   * @returns {Series}
   */
  bars(column, place, stroke) {
    const full = column.ink === "other" ? hatched(stroke, 1) : stroke;
    const fills = this.table.buckets.map((bucket) => (bucket.open ? hatched(stroke, 1) : full));
    const rows = this.table.buckets.map((_, row) => row);
    const edge = colour("--back");
    const disp = {
      fill: { unit: 3, values: () => fills },
      stroke: { unit: 3, values: () => rows.map(() => edge) },
      ...(this.isStack && {
        y0: { unit: 1, values: () => rows.map((row) => this.sum(row, place)) },
        y1: { unit: 1, values: () => rows.map((row) => this.sum(row, place + 1)) },
      }),
    };
    const paths = library.paths.bars?.({ size: [1, Infinity, 1], align: 1, gap: 1, disp: /** @type {any} */ (disp) });
    return { stroke, width: 1, points: { show: false }, ...(paths && { paths }) };
  }

  listen() {
    this.room.tabIndex = 0;
    this.room.setAttribute("role", "slider"); // its value is the bucket that is shown
    this.room.setAttribute("aria-label", this.figure.querySelector("figcaption")?.textContent ?? "");
    this.room.setAttribute("aria-valuemin", "1");
    this.room.setAttribute("aria-valuemax", String(this.table.buckets.length));
    this.room.setAttribute("aria-valuenow", String(this.table.buckets.length));
    this.room.setAttribute("aria-valuetext", this.words(this.table.buckets.length - 1));
    this.room.addEventListener("keydown", (event) => this.press(event));
    this.room.addEventListener("blur", () => this.show(-1));
    this.room.addEventListener("pointerleave", () => this.show(-1));
    this.room.addEventListener("click", (event) => {
      if (/** @type {PointerEvent} */ (event).pointerType === "mouse") this.open();
    });
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    const last = this.table.buckets.length - 1;
    const from = this.place < 0 ? last + 1 : this.place;
    const targets = /** @type {Record<string, number | undefined>} */ ({
      ArrowLeft: from - 1,
      ArrowDown: from - 1,
      ArrowRight: from + 1,
      ArrowUp: from + 1,
      Home: 0,
      End: last,
    });
    const target = targets[event.key];
    if (event.key === "Enter") this.open();
    if (event.key === "Escape") this.show(-1);
    if (target === undefined || !this.plot) return;
    event.preventDefault();
    const place = Math.min(last, Math.max(0, target));
    this.plot.setCursor({ left: this.plot.valToPos(this.table.buckets[place]?.seconds ?? 0, "x"), top: 0 }, false);
    this.show(place);
  }

  open() {
    const address = this.place < 0 ? "" : this.table.address(this.place);
    if (address) location.assign(address);
  }

  /**
   * Show the numbers of a bucket beside it; of none for -1.
   * @param {number} place
   */
  show(place) {
    this.place = place;
    const bucket = this.table.buckets[place];
    this.tip.hidden = !bucket;
    if (!bucket || !this.plot) return;
    this.room.setAttribute("aria-valuenow", String(place + 1));
    this.room.setAttribute("aria-valuetext", this.words(place));
    this.tip.replaceChildren(made("strong", "", this.title(bucket)), this.numbers(place));
    const left = this.plot.over.offsetLeft + this.plot.valToPos(bucket.seconds, "x");
    const right = left > this.room.clientWidth / 2;
    this.tip.style.left = right ? "" : `${left + 2 * FREE_PIXELS}px`;
    this.tip.style.right = right ? `${this.room.clientWidth - left + FREE_PIXELS}px` : "";
  }

  /** @param {Bucket} bucket */
  title(bucket) {
    return `${bucket.label} UTC${bucket.open ? `, ${this.table.group.dataset["open"]}` : ""}`;
  }

  /** @param {number} place */
  numbers(place) {
    const table = made("table");
    const total = this.sum(place);
    this.columns.forEach((column, number) => {
      const row = table.insertRow();
      const head = made("th", "", column.name);
      head.prepend(/** @type {Node} */ (this.inks[number]?.cloneNode()));
      row.append(head, made("td", "", column.texts[place]));
      const value = column.values[place];
      if (this.isStack && total) row.append(made("td", "", `${Math.round((100 * (value ?? 0)) / total)} %`));
    });
    if (this.isStack) {
      const row = table.insertRow();
      row.append(made("th", "", this.table.group.dataset["total"]), made("td", "", total.toLocaleString("en", { maximumSignificantDigits: 6 })));
    }
    return table;
  }

  /** @param {number} place */
  words(place) {
    const bucket = this.table.buckets[place];
    return bucket ? [this.title(bucket), ...this.columns.map((column) => `${column.name} ${column.texts[place]}`)].join("; ") : "";
  }
}

/**
 * @param {HTMLElement} row
 * @returns {Bucket}
 */
function bucketOf(row) {
  const [label, ...cells] = [...row.children].map((cell) => cell.textContent?.trim() ?? "");
  return { label: label ?? "", seconds: Number(row.dataset["time"]), open: "open" in row.dataset, texts: cells };
}

/**
 * Return the number of a cell, such as `1,204.10` or `41 %`; null for one that is not known.
 * @param {string} text
 */
function numberOf(text) {
  const number = Number.parseFloat(text.replaceAll(",", ""));
  return Number.isNaN(number) ? null : number;
}

/**
 * Return the label of a time on the axis: of the day where one begins.
 * @param {number} seconds
 * @param {number} step
 */
const timeLabel = (seconds, step) =>
  (step >= DAY_SECONDS || seconds % DAY_SECONDS === 0 ? calendar : clock).format(seconds * 1000);

/**
 * Return the width of an axis with room for its labels, such as `0.00002`.
 * @param {string[]} labels
 */
const axisPixels = (labels) => Math.max(AXIS_PIXELS, TICK_PIXELS + LETTER_PIXELS * Math.max(0, ...labels.map((label) => label.length)));

/** @param {number} seconds */
const moment = (seconds) => new Date(seconds * 1000).toISOString();

/**
 * Return a colour of the style, as the canvas knows it.
 * @param {string} name
 */
function colour(name) {
  const probe = made("i");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

/**
 * Return a pattern of lines of a colour.
 * @param {string} ink
 * @param {number} strength
 * @returns {any} a fill of the canvas, which the types of the library call a text
 */
function hatched(ink, strength) {
  const tile = made("canvas");
  tile.width = tile.height = HATCH_PIXELS;
  const context = tile.getContext("2d");
  if (!context) return ink;
  context.globalAlpha = strength;
  context.strokeStyle = ink;
  context.lineWidth = 2;
  for (const shift of [-HATCH_PIXELS, 0, HATCH_PIXELS]) {
    context.moveTo(shift, HATCH_PIXELS);
    context.lineTo(shift + HATCH_PIXELS, 0);
  }
  context.stroke();
  return context.createPattern(tile, "repeat");
}

/** Draw the charts of the page, also those of a part that was replaced. */
function drawAll() {
  for (const chart of drawn) {
    if (chart.figure.isConnected) continue;
    chart.end();
    drawn.delete(chart);
  }
  for (const group of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".charts"))) {
    const table = new ChartTable(group);
    group.querySelectorAll("figure").forEach((figure, number) => {
      if (!figure.querySelector(".tip")) drawn.add(new DrawnChart(figure, table, table.columns(number)));
    });
  }
}

drawAll();
document.addEventListener("replaced", drawAll);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawn.forEach((chart) => chart.draw()));
