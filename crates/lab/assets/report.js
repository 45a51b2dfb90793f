"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const plots = [];

  const colour = (name) => {
    const probe = document.createElement("span");
    probe.style.color = `var(--${name})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };
  const fade = (rgb, alpha) => rgb.replace("rgb(", "rgba(").replace(")", `, ${alpha})`);
  // An arm looks the same in every chart: eight colours, then dashes, then dots.
  const dashes = [undefined, [8, 4], [2, 3]];
  const names = [];
  const look = (name) => {
    if (!names.includes(name)) names.push(name);
    const index = names.indexOf(name);
    const dash = dashes[Math.trunc(index / 8) % dashes.length];
    return { stroke: colour(`arm-${index % 8}`), dash };
  };
  const short = (ms) =>
    ms == null ? "" : ms >= 1000 ? `${+(ms / 1000).toPrecision(3)} s`
      : ms >= 1 ? `${+ms.toPrecision(3)} ms` : `${+(ms * 1000).toPrecision(3)} µs`;
  const axis = (extra) => ({
    stroke: colour("soft"),
    grid: { stroke: colour("line"), width: 1 },
    ticks: { stroke: colour("line"), width: 1 },
    font: "12px system-ui",
    ...extra,
  });
  const logScale = {
    distr: 3,
    range: (_plot, low, high) =>
      low > 0 && high > 0 ? [low * 0.8, high * 1.25] : [0.1, 1],
  };
  const logAxis = () => axis({
    size: 66,
    values: (_plot, ticks) => ticks.map((tick) =>
      tick != null && /^[125]/.test(String(+tick.toPrecision(2)).replace(/^0\.0*/, ""))
        ? short(tick) : ""),
  });
  const percentile = (x) => {
    const share = 100 * (1 - 10 ** -x);
    return `p${+share.toFixed(Math.max(0, Math.ceil(x) - 1))}`;
  };

  const curve = (place, chart) => {
    const series = [{ label: "percentile", value: (_plot, x) => (x == null ? "" : percentile(x)) }];
    const columns = [chart.x];
    const bands = [];
    chart.arms.forEach((arm) => {
      const { stroke, dash } = look(arm.name);
      const value = (_plot, ms) => short(ms);
      const edge = { show: true, width: 0, points: { show: false }, stroke: "transparent" };
      series.push({ label: `${arm.name} high`, ...edge }, { label: `${arm.name} low`, ...edge });
      const edges = [series.length - 2, series.length - 1];
      bands.push({ series: edges, fill: fade(stroke, 0.16) });
      const points = { show: false };
      series.push({ label: arm.name, stroke, dash, width: 2, value, points });
      columns.push(arm.high, arm.low, arm.merged);
    });
    return [place, {
      height: 300,
      series,
      bands,
      scales: { x: { time: false }, y: logScale },
      axes: [
        axis({
          splits: () => [0, Math.log10(2), 1, 2, 3, 4, 5, 6].filter((x) => x <= chart.x.at(-1) + 0.01),
          values: (_plot, ticks) => ticks.map((x) => (x < 0.01 ? "p0" : percentile(x))),
        }),
        logAxis(),
      ],
    }, columns];
  };

  const course = (place, chart) => {
    const isTime = chart.unit === "ms";
    const value = (_plot, y) => (y == null ? "" : isTime ? short(y) : `${+y.toPrecision(3)} ${chart.unit}`);
    const series = [{ label: "time", value: (_plot, x) => (x == null ? "" : `${x.toFixed(1)} s`) }];
    chart.arms.forEach((arm) => {
      const { stroke, dash } = look(arm.name);
      const points = { show: true, size: 4, fill: stroke };
      series.push({ label: arm.name, stroke, dash, width: 1.5, value, spanGaps: false, points });
    });
    return [place, {
      height: 260,
      series,
      scales: { x: { time: false }, y: isTime ? logScale : { range: (_p, _l, high) => [0, high * 1.1] } },
      axes: [
        axis({ values: (_plot, ticks) => ticks.map((x) => `${x} s`) }),
        isTime ? logAxis() : axis({ size: 66 }),
      ],
    }, [chart.x, ...chart.arms.map((arm) => arm.y)]];
  };

  const over = (place, chart) => {
    const value = (_plot, y) => (y == null ? "" : chart.unit === "ms" ? short(y)
      : `${+y.toPrecision(3)} ${chart.unit}`);
    const count = (x) => (x == null ? "" : x.toLocaleString("en-US"));
    const series = [{ label: "partitions", value: (_plot, x) => count(x) }];
    chart.arms.forEach((arm) => {
      const { stroke, dash } = look(arm.name);
      const points = { show: true, size: 6, fill: stroke };
      series.push({ label: arm.name, stroke, dash, width: 2, value, spanGaps: true, points });
    });
    const decades = (_plot, ticks) => ticks.map((x) =>
      (x != null && Math.abs(Math.log10(x) % 1) < 1e-9 ? count(x) : ""));
    const plain = axis({ size: 66 });
    const log = chart.unit === "ms" ? logAxis() : axis({
      size: 66,
      values: (_plot, ticks) => ticks.map((y) =>
        (y != null && /^[125]/.test(String(+y.toPrecision(2)).replace(/^0\.0*/, ""))
          ? (+y.toPrecision(3)).toLocaleString("en-US") : "")),
    });
    return [place, {
      height: 280,
      series,
      scales: {
        x: { time: false, distr: 3, range: (_plot, low, high) => [low * 0.8, high * 1.25] },
        y: chart.is_log ? logScale : { range: (_p, _l, high) => [0, (high || 1) * 1.1] },
      },
      axes: [axis({ values: decades }), chart.is_log ? log : plain],
    }, [chart.x, ...chart.arms.map((arm) => arm.y)]];
  };

  const kinds = { curve, course, over };
  const draw = () => {
    while (plots.length) plots.pop().destroy();
    document.querySelectorAll("[data-chart]").forEach((place) => {
      const chart = data.charts[Number(place.dataset.chart)];
      const [where, options, columns] = kinds[chart.kind](place, chart);
      options.width = where.clientWidth;
      const hidden = [];
      options.series.forEach((entry, index) => {
        if (entry.stroke === "transparent") hidden.push(index);
      });
      const plot = new uPlot(options, columns, where);
      plot.root.querySelectorAll(".u-series").forEach((row, index) => {
        if (hidden.includes(index)) row.style.display = "none";
      });
      plots.push(plot);
    });
  };

  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  addEventListener("resize", () => plots.forEach((plot) =>
    plot.setSize({ width: plot.root.parentElement.clientWidth, height: plot.height })));
})();
