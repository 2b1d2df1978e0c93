"use strict";
const bands = pageData.load.bands;
const loadBox = document.getElementById("load");
const loadCharts = [];

function bandShapes() {
  return bands.filter((band) => band.phase === "validation").map((band) => ({
    type: "rect", xref: "x", yref: "paper", x0: band.start, x1: band.end, y0: 0, y1: 1, line: { width: 0 },
    fillcolor: colour("--band"), layer: "below",
  })).concat(bands.filter((band) => band.phase === "train").map((band) => ({
    type: "line", xref: "x", yref: "paper", x0: band.start, x1: band.start, y0: 0, y1: 1,
    line: { width: 1, color: colour("--line") }, layer: "below",
  })));
}

// As many epochs are named as have room; the first one says what the numbers are.
function bandLabels(width) {
  const epochs = new Map();
  for (const band of bands) {
    const known = epochs.get(band.epoch) || { start: band.start, end: band.end };
    epochs.set(band.epoch, { start: Math.min(known.start, band.start), end: Math.max(known.end, band.end) });
  }
  const step = Math.max(1, Math.ceil(epochs.size * 60 / Math.max(width, 60)));
  return [...epochs].filter((_, index) => index % step === 0).map(([epoch, time], index) => ({
    xref: "x", yref: "paper", x: (time.start + time.end) / 2, y: 1, yanchor: "bottom", showarrow: false,
    text: (index === 0 || step === 1 && epochs.size * 90 < width ? "epoch " : "") + epoch, font: { size: 11, color: colour("--muted") },
  }));
}

function addLoadPanel(panel, index) {
  const box = element("div", "panel");
  const head = element("div", "panel-head");
  head.append(element("h3", "", panel.title + ", " + panel.unit));
  const entries = panel.series.map((series, position) => ({ name: series.name, index: position }));
  head.append(legend(index === 0 ? entries.concat([{ name: "validation phase", className: "band" }]) : entries));
  const chart = element("div", index === 0 ? "chart first" : "chart");
  box.append(head, chart);
  loadBox.append(box);
  loadCharts.push(chart);
  drawings.push(() => {
    const layout = baseLayout(panel.unit, panel.most);
    layout.shapes = bandShapes();
    layout.margin.t = index === 0 ? 22 : 8;
    layout.annotations = index === 0 ? bandLabels(chart.clientWidth - 60) : [];
    layout.xaxis.ticksuffix = " s";
    layout.xaxis.range = timeRange();
    Plotly.react(chart, panel.series.map((series, position) => ({
      type: "scatter", mode: "lines", name: plainText(series.name), x: series.x, y: series.y, connectgaps: false,
      line: { color: seriesColour(position), width: 1.6 }, hovertemplate: hover(panel.unit, panel.unit === "%" ? 0 : 2),
    })), layout, plotConfig);
  });
}

function timeRange() {
  const times = bands.flatMap((band) => [band.start, band.end]);
  for (const panel of pageData.load.panels) for (const series of panel.series) times.push(series.x[0], series.x.at(-1));
  return [0, Math.max(...times.filter(Number.isFinite), 1)];
}

// A zoom in one panel is a zoom in all.
let isLinking = false;
function linkTimes(source) {
  source.on("plotly_relayout", (change) => {
    if (isLinking || !Object.keys(change).some((key) => key.startsWith("xaxis"))) return;
    isLinking = true;
    const range = change["xaxis.autorange"] ? timeRange() : [...source.layout.xaxis.range];
    Promise.all(loadCharts.map((chart) => Plotly.relayout(chart, { "xaxis.range": range.slice() }))).finally(() => { isLinking = false; });
  });
}

function addEpochChart(description) {
  const card = element("div", "card");
  const head = element("div", "panel-head");
  head.append(element("h3", "", description.title + (description.unit ? ", " + description.unit : "")));
  const index = (series) => (series.name === "train" ? 0 : 1);
  head.append(legend(description.series.map((series) => ({ name: series.name, index: index(series), className: index(series) ? "dashed" : "" }))));
  const chart = element("div", "chart epoch");
  card.append(head, chart);
  document.getElementById("epochs").append(card);
  drawings.push(() => {
    const layout = baseLayout(description.unit);
    layout.margin.b = 38;
    layout.yaxis.rangemode = description.unit ? "tozero" : "normal";
    layout.xaxis.title = { text: "epoch", standoff: 6 };
    const last = Math.max(...description.series.flatMap((series) => series.x));
    layout.xaxis.dtick = last <= 12 ? 1 : undefined;
    layout.xaxis.tickformat = "d";
    Plotly.react(chart, description.series.map((series) => ({
      type: "scatter", mode: series.x.length > 40 ? "lines" : "lines+markers", name: series.name, x: series.x, y: series.y,
      line: { color: seriesColour(index(series)), width: 2, dash: index(series) ? "dash" : "solid" },
      marker: { size: 7, symbol: index(series) ? "diamond" : "circle" },
      hovertemplate: hover(description.unit, description.unit ? 1 : 4),
    })), layout, plotConfig);
  });
}

pageData.load.panels.forEach(addLoadPanel);
pageData.epochs.forEach(addEpochChart);
drawAll();
loadCharts.forEach(linkTimes);
