"use strict";
const pageData = JSON.parse(document.getElementById("page-data").textContent);
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const seriesColour = (index) => colour("--series-" + (index % 8 + 1));
const plotConfig = { responsive: true, displaylogo: false, displayModeBar: false };

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function legend(entries) {
  const list = element("div", "legend");
  for (const entry of entries) {
    const item = element("span", entry.className, entry.name);
    if (entry.index !== undefined) item.style.setProperty("--key", "var(--series-" + (entry.index % 8 + 1) + ")");
    list.append(item);
  }
  return list;
}

function baseLayout(unit, most) {
  const axis = { gridcolor: colour("--grid"), linecolor: colour("--line"), zerolinecolor: colour("--line"), automargin: true };
  return {
    margin: { l: 48, r: 10, t: 8, b: 26 },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, sans-serif", size: 12, color: colour("--muted") },
    hoverlabel: { bgcolor: colour("--surface"), bordercolor: colour("--line"), font: { color: colour("--ink") } },
    showlegend: false, hovermode: "x unified", dragmode: "zoom",
    xaxis: { ...axis },
    yaxis: { ...axis, rangemode: "tozero", fixedrange: true, ...(most ? { range: [0, most * 1.04] } : {}) },
  };
}

// A chart is drawn once every box of the page has its place, and again whenever the colours of the page change.
const drawings = [];
function drawAll() {
  drawings.forEach((drawing) => drawing());
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);

function hover(unit, decimals) {
  return "%{y:,." + decimals + "f}" + (unit ? " " + unit : "") + "<extra>%{fullData.name}</extra>";
}

// Plotly reads tags in names: what comes from data is shown as it is written.
function plainText(text) {
  return String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
