// Charts by uPlot, and the map on a canvas. Colours come from the style sheet.
import { number } from "./dom.js";

export const colour = (place, name) => getComputedStyle(place).getPropertyValue(`--${name}`).trim();

const axes = (place, x, y) => [x, y].map((label) => ({
  label, stroke: colour(place, "soft"), grid: { stroke: colour(place, "line"), width: 1 }, ticks: { stroke: colour(place, "line") },
  labelSize: 22, font: "12px system-ui", labelFont: "12px system-ui", size: label === y ? 62 : 40,
  values: (plot, splits) => splits.map((v) => (v == null ? "" : Math.abs(v) >= 1e4 && label === x ? `${v / 1000}k` : number(v, 4))),
}));

// A chart that keeps its place: data are replaced, the element stays.
export class Chart {
  constructor(place, options, signal) {
    this.place = place;
    this.options = options;
    this.plot = null;
    this.data = null;
    new ResizeObserver(() => this.plot?.setSize(this.size())).observe(place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw(), { signal });
    signal.addEventListener("abort", () => this.plot?.destroy());
  }

  size() {
    return { width: Math.max(this.place.clientWidth, 120), height: this.options.height ?? 260 };
  }

  redraw() {
    this.plot?.destroy();
    this.plot = null;
    if (this.data) this.show(this.data);
  }

  show(data) {
    this.data = data;
    if (this.plot) {
      this.plot.setData(data);
      return;
    }
    const { series, bands = [], x, y, log = false, scaleX = {}, hooks = {} } = this.options;
    this.plot = new uPlot({
      ...this.size(), axes: axes(this.place, x, y), hooks,
      scales: { x: { time: false, ...scaleX }, y: { distr: log ? 3 : 1, ...(this.options.range ? { range: () => this.options.range(this.data) } : {}) } },
      legend: { live: false, show: this.options.legend ?? true }, cursor: { drag: { x: false, y: false } },
      series: [{ label: x }, ...series.map((one) => ({ ...one, stroke: one.colour && colour(this.place, one.colour),
        width: one.width ?? 2, spanGaps: true, points: { show: one.points ?? false } }))],
      bands: bands.map((band) => ({ ...band, fill: `color-mix(in srgb, ${colour(this.place, band.colour)} 18%, transparent)` })),
    }, data, this.place);
  }
}

const edges = (u) => u.map((at, i) => (i ? (u[i - 1] + at) / 2 : 0)).concat(1);

// The map: the chosen quantity as colour, cells as lines, evaluations as dots, the point as a cross.
export function drawMap(canvas, map, layer) {
  const scale = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  canvas.width = width * scale;
  canvas.height = height * scale;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  const box = { left: 70, top: 8, right: width - 12, bottom: height - 44 };
  const across = (u) => box.left + u * (box.right - box.left), up = (u) => box.bottom - u * (box.bottom - box.top);
  canvas.box = box;
  const grid = map[layer], flat = grid.flat().filter((v) => v != null);
  const least = Math.min(...flat), most = Math.max(...flat);
  const [low, high] = ["low", "high"].map((name) => colour(canvas, name).split(",").map(Number));
  const shade = (v) => {
    const part = most > least ? (v - least) / (most - least) : 0.5;
    return `rgb(${low.map((a, i) => Math.round(a + part * (high[i] - a))).join(",")})`;
  };
  const xs = edges(map.x.u), ys = edges(map.y.u);
  grid.forEach((row, j) => row.forEach((v, i) => {
    if (v == null) return;
    pen.fillStyle = shade(v);
    pen.fillRect(across(xs[i]), up(ys[j + 1]), across(xs[i + 1]) - across(xs[i]) + 0.6, up(ys[j]) - up(ys[j + 1]) + 0.6);
  }));
  if (layer !== "evaluated") dots(pen, map, across, up);
  for (const cell of map.cells.length < 2 ? [] : [...map.cells].sort((a, b) => a.top - b.top)) {
    const [a, b, c, d] = cell.box;
    pen.strokeStyle = cell.top ? colour(canvas, "orange") : "rgba(128,128,128,.55)";
    pen.lineWidth = cell.top ? 3 : 0.7;
    pen.strokeRect(across(a), up(d), across(b) - across(a), up(c) - up(d));
  }
  const [x, y] = [across(map.place[0]), up(map.place[1])];
  pen.strokeStyle = "#fff";
  pen.lineWidth = 5;
  for (let turn = 0; turn < 2; turn += 1) {
    pen.beginPath();
    pen.moveTo(x - 8, y); pen.lineTo(x + 8, y); pen.moveTo(x, y - 8); pen.lineTo(x, y + 8);
    pen.stroke();
    pen.strokeStyle = "#c2185b";
    pen.lineWidth = 2;
  }
  pen.fillStyle = colour(canvas, "soft");
  labels(pen, map, box, across, up);
  return { least, most };
}

function dots(pen, map, across, up) {
  const most = Math.max(...map.evaluated.flat(), 1), rows = map.evaluated.length, columns = map.evaluated[0].length;
  pen.fillStyle = "rgba(0,0,0,.6)";
  pen.strokeStyle = "rgba(255,255,255,.7)"; // seen on dark ground, too
  pen.lineWidth = 0.8;
  map.evaluated.forEach((row, j) => row.forEach((n, i) => {
    if (!n) return;
    const size = 1.2 + 4.5 * Math.sqrt(n / most);
    pen.beginPath();
    pen.arc(across((i + 0.5) / columns), up((j + 0.5) / rows), size, 0, 7);
    pen.fill();
    pen.stroke();
  }));
}

function labels(pen, map, box, across, up) {
  pen.font = "12px system-ui";
  const some = (axis) => {
    const step = Math.max(1, Math.ceil((axis.values.length - 1) / (axis.kind === "choice" ? 8 : 4)));
    return axis.values.map((value, i) => [value, axis.u[i], i]).filter(([, , i]) => i % step === 0 || i === axis.values.length - 1);
  };
  const text = (value) => { const t = typeof value === "number" ? number(value, 3) : String(value); return t.length > 9 ? `${t.slice(0, 8)}…` : t; };
  pen.textAlign = "center";
  for (const [value, u] of some(map.x)) pen.fillText(text(value), Math.min(Math.max(across(u), box.left + 12), box.right - 14), box.bottom + 16);
  pen.fillText(map.x.name, (box.left + box.right) / 2, box.bottom + 35);
  pen.textAlign = "right";
  for (const [value, u] of some(map.y)) pen.fillText(text(value), box.left - 6, Math.min(Math.max(up(u) + 4, box.top + 10), box.bottom));
  pen.save();
  pen.translate(14, (box.top + box.bottom) / 2);
  pen.rotate(-Math.PI / 2);
  pen.textAlign = "center";
  pen.fillText(map.y.name, 0, 0);
  pen.restore();
}

// The values of the map's parameters at a place of the canvas; null outside.
export function placed(canvas, map, event) {
  const frame = canvas.getBoundingClientRect(), box = canvas.box;
  const x = (event.clientX - frame.left - box.left) / (box.right - box.left);
  const y = (box.bottom - (event.clientY - frame.top)) / (box.bottom - box.top);
  if (x < 0 || x > 1 || y < 0 || y > 1) return null;
  return [map.x.values[nearest(map.x, x)], map.y.values[nearest(map.y, y)]];
}

const nearest = (axis, u) => axis.u.reduce((best, at, i) => (Math.abs(at - u) < Math.abs(axis.u[best] - u) ? i : best), 0);

// The values one step away from the map's point, by an arrow key; null for other keys.
export function stepped(map, key) {
  const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowDown: [0, -1], ArrowUp: [0, 1] }[key];
  if (!by) return null;
  return [map.x, map.y].map((axis, i) => axis.values[Math.min(Math.max(nearest(axis, map.place[i]) + by[i], 0), axis.values.length - 1)]);
}
