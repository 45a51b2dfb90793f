// Opens reports of the laboratory in a real browser that has no network, and prints one line of
// JSON per check: `node reports.js [--version] FILE...`. PEER_BROWSER is where the packages lie.

"use strict";

const { pathToFileURL } = require("node:url");
const path = require("node:path");
const { launch } = require("./launch.js");

const WIDTHS = [1200, 400];

const check = (name, problems) =>
  console.log(JSON.stringify({
    check: name, ok: problems.length === 0, detail: problems.slice(0, 5).join("; "),
  }));

// What only the page itself can tell: charts without a line, and what does not fit its width.
const inspect = () => {
  const blank = [...document.querySelectorAll("[data-chart]")].filter((place) => {
    const canvas = place.querySelector("canvas");
    if (!canvas || canvas.width === 0) return true;
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const colours = new Set();
    for (let at = 0; at < data.length; at += 4) {
      const [red, green, blue, alpha] = data.subarray(at, at + 4);
      const isGrey = Math.max(red, green, blue) - Math.min(red, green, blue) < 48;
      if (alpha > 127 && !isGrey) colours.add((red << 16) | (green << 8) | blue);
    }
    return colours.size === 0;
  });
  // Of the two drawings of a chart the one that this width shows has to hold something.
  const empty = [...document.querySelectorAll("figure")].filter((figure) => {
    const charts = [...figure.querySelectorAll("svg.chart")];
    const shown = charts.filter((svg) => svg.getClientRects().length);
    const isFolded = figure.closest("details:not([open])");
    return !isFolded && (shown.length !== 1 || !shown[0].querySelector(".fill, .stroke"));
  });
  return {
    empty: empty.map((figure) => figure.querySelector("strong")?.textContent ?? "?"),
    blank: blank.map((place) => place.closest(".card")?.querySelector("h3")?.textContent ?? "?"),
    answer: document.querySelector("header .answer")?.textContent.trim() ?? "",
    scroll: document.documentElement.scrollWidth,
    width: window.innerWidth,
  };
};

// Makes a frame of the flame graph as wide as it is and goes back, and compares with another arm.
const zoom = () => {
  const graph = document.querySelector("[data-flame-graph]");
  if (!graph) return [];
  const problems = [];
  const frames = () => [...graph.querySelectorAll("button.frame")];
  const whole = frames().length;
  const narrow = frames().find((frame) => parseFloat(frame.style.width) < 99);
  if (!narrow) problems.push("no frame to zoom into");
  const name = narrow?.textContent;
  narrow?.click();
  const zoomed = frames().filter((frame) => frame.textContent === name);
  if (narrow && !zoomed.some((frame) => parseFloat(frame.style.width) === 100)) {
    problems.push(`${name} is not as wide as the page`);
  }
  document.querySelector("[data-flame-back]").click();
  if (frames().length !== whole) problems.push("the way back leads elsewhere");
  const other = document.querySelector("[data-flame-other]");
  if (other.options.length > 1) {
    other.selectedIndex = 1;
    other.dispatchEvent(new Event("change"));
    if (frames().length !== whole) problems.push("a comparison has other frames");
  }
  return problems;
};

const report = async (browser, file) => {
  const name = path.basename(path.dirname(file));
  const errors = [];
  const outside = [];
  const found = [];
  const stuck = [];
  for (const width of WIDTHS) {
    const page = await browser.newPage();
    await page.setViewport({ width, height: 900 });
    await page.setOfflineMode(true);
    page.on("pageerror", (error) => errors.push(error.message));
    page.on("console", (said) => said.type() === "error" && errors.push(said.text()));
    await page.setRequestInterception(true);
    page.on("request", (request) => {
      if (!/^(file|data):/.test(request.url())) outside.push(request.url());
      request.continue();
    });
    await page.goto(pathToFileURL(file).href, { waitUntil: "load" });
    found.push(await page.evaluate(inspect));
    stuck.push(...await page.evaluate(zoom));
    await page.close();
  }
  check(`${name}: opens without an error`, errors);
  check(`${name}: asks for nothing from outside`, outside);
  check(`${name}: draws every chart`, found.flatMap(({ blank, empty }) => [...blank, ...empty]));
  check(`${name}: zooms its flame graphs`, stuck);
  check(`${name}: begins with an answer`, found[0].answer ? [] : ["no sentence after the title"]);
  check(`${name}: fits its window`, found.filter(({ scroll, width }) => scroll > width)
    .map(({ scroll, width }) => `${scroll} of ${width} px`));
};

const main = async () => {
  const browser = await launch();
  try {
    const files = process.argv.slice(2);
    if (files[0] === "--version") {
      console.log(await browser.version());
      return;
    }
    for (const file of files) await report(browser, path.resolve(file));
  } finally {
    await browser.close();
  }
};

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
