"use strict";
const symbols = ["circle", "diamond", "square", "triangle-up", "x", "cross", "star", "pentagon"];
const dashes = ["solid", "dash", "dot", "dashdot"];

function addFigureCharts(box) {
  const figure = pageData.figures[Number(box.dataset.figure)];
  const values = figure.phases.flatMap((phase) => phase.runs.flat()).filter((value) => value !== null);
  const most = Math.max(...values);
  const isFromZero = figure.unit !== "" && most > 0;
  // one epoch makes no curve: the table says it better
  for (const phase of figure.phases.filter((candidate) => candidate.epochs.length > 1)) {
    const card = element("div");
    const head = element("div", "panel-head");
    head.append(element("span", "muted", phase.phase));
    head.append(legend(pageData.names.map((name, index) => ({ name, index, className: index % 4 === 1 ? "dashed" : "" }))));
    const chart = element("div", "chart");
    card.append(head, chart);
    box.append(card);
    drawings.push(() => {
      const layout = baseLayout(figure.unit);
      layout.margin.b = 36;
      layout.xaxis.title = { text: "epoch", standoff: 4 };
      layout.xaxis.dtick = Math.max(...phase.epochs) <= 12 ? 1 : undefined;
      layout.xaxis.tickformat = "d";
      // both phases on one scale, so that they can be compared by eye
      if (isFromZero) layout.yaxis.range = [0, most * 1.08];
      else layout.yaxis.rangemode = "normal";
      Plotly.react(chart, phase.runs.map((run, index) => ({
        type: "scatter", mode: phase.epochs.length > 40 ? "lines" : "lines+markers", name: plainText(pageData.names[index]),
        x: phase.epochs, y: run, line: { color: seriesColour(index), width: 2, dash: dashes[index % 4] },
        marker: { size: 7, symbol: symbols[index % 8] }, hovertemplate: hover(figure.unit, figure.decimals),
      })), layout, plotConfig);
    });
  }
}

document.querySelectorAll(".charts").forEach(addFigureCharts);
drawAll();
