// Opens the page of a consumer's admin port in a real browser, and uses it as a person does:
// `node consumer.js ADDRESS TOKEN`. Prints one line of JSON per check.
//
// The app has a route with the topic `orders`. Its topic of dead letters holds one that reads like
// markup.

"use strict";

const { launch, packages } = require("./launch.js");

const [address, token] = process.argv.slice(2);
const WIDTHS = [1200, 390];

const check = (name, problems) =>
  console.log(JSON.stringify({
    check: name, ok: problems.length === 0, detail: problems.slice(0, 5).join("; "),
  }));

// Waits until the page says so.
const until = async (page, is, ...given) => {
  for (;;) {
    if (await page.evaluate(is, ...given)) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
};

const click = (page, selector) =>
  page.evaluate((wanted) => document.querySelector(wanted).click(), selector);

// Fields without a name, text that is too pale, and what does not fit.
const inspect = () => {
  const luminance = (colour) => {
    const parts = colour.match(/[\d.]+/g).slice(0, 3).map((it) => it / 255);
    const linear = parts.map((it) => (it <= 0.04045 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const isClear = (colour) => colour === "transparent" || /, 0\)$/.test(colour);
  const behind = (element) => {
    const colour = getComputedStyle(element).backgroundColor;
    return isClear(colour) && element.parentElement ? behind(element.parentElement) : colour;
  };
  const shown = (element) => element.getClientRects().length > 0;
  const pale = [...document.querySelectorAll("main *")].filter((element) => {
    const says = [...element.childNodes].some((it) => it.nodeType === 3 && it.data.trim());
    if (!says || !shown(element) || element.closest("svg, option, thead")) return false;
    const [one, other] =
      [getComputedStyle(element).color, behind(element)].map(luminance).sort((a, b) => b - a);
    return (one + 0.05) / (other + 0.05) < 4.5;
  });
  const fields = [...document.querySelectorAll("input, select, button")].filter(shown);
  const unnamed = fields.filter((it) =>
    !it.textContent.trim() && !it.getAttribute("aria-label") && !it.labels?.length);
  return {
    pale: pale.map((it) => `${it.tagName} ${it.textContent.slice(0, 30)}`),
    unnamed: unnamed.map((it) => it.outerHTML.slice(0, 60)),
    lines: document.querySelectorAll("svg.chart path, svg.chart circle").length,
    scroll: document.documentElement.scrollWidth,
    width: window.innerWidth,
  };
};

const open = async (browser, width, scheme, problems) => {
  const page = await browser.newPage();
  await page.setViewport({ width, height: 844 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("console", (said) => {
    // The answer that makes the page ask for the token.
    if (said.type() === "error" && !said.text().includes("401")) problems.push(said.text());
  });
  page.on("request", (request) => {
    const { host, protocol } = new URL(request.url());
    if (protocol !== "data:" && host !== address) problems.push(`asks ${request.url()}`);
  });
  await page.goto(`http://${address}/`, { waitUntil: "load" });
  await until(page, () => !document.getElementById("token-form").hidden);
  await page.evaluate((secret) => {
    document.getElementById("token").value = secret;
    document.querySelector("#token-form button").click();
  }, token);
  await until(page, () => document.querySelector("#routes button"));
  await click(page, "#routes button");
  await until(page, () => document.querySelector("#partitions button"));
  await until(page, () => document.querySelector(".letter"));
  await until(page, () => document.querySelector("svg.chart path, svg.chart circle"));
  return page;
};

const pause = async (page) => {
  const verb = () => document.querySelector("#partitions button").textContent;
  await click(page, "#partitions button");
  await until(page, () => document.querySelector("#partitions button").textContent === "Resume");
  const state = await page.evaluate(() =>
    document.querySelector("#partitions td[data-label=State]").textContent);
  await click(page, "#partitions button");
  await until(page, () => document.querySelector("#partitions button").textContent === "Pause");
  const is = await page.evaluate(verb);
  check("pauses a partition and resumes it", [
    ...(state === "paused on request" ? [] : [`state: ${state}`]),
    ...(is === "Pause" ? [] : [is]),
  ]);
};

const letters = async (page) => {
  const found = await page.evaluate(() => {
    const letter = document.querySelector(".letter");
    return {
      text: letter.textContent, markup: letter.querySelectorAll("img, script, b").length,
    };
  });
  check("shows a dead letter as text", [
    ...(found.text.includes("<img src=x onerror=alert(1)>") ? [] : [found.text]),
    ...(found.markup ? ["it is taken as markup"] : []),
  ]);
  const search = async (words) => {
    await page.evaluate((wanted) => {
      document.getElementById("letters-filter").value = wanted;
      document.querySelector("#letters-form button").click();
    }, words);
    await until(page, () => document.getElementById("letters-said").textContent !== "Searching");
    return page.evaluate(() => document.querySelectorAll(".letter").length);
  };
  const counts = [await search("nothing like it"), await search("ONERROR")];
  check("filters dead letters", counts.join() === "0,1" ? [] : [counts.join()]);
  await click(page, ".letter header button");
  await until(page, () => document.querySelector(".letter .outcome").textContent);
  const outcome = await page.evaluate(() =>
    document.querySelector(".letter .outcome").textContent);
  check("replays a dead letter", outcome.startsWith("Replayed to orders-0 ") ? [] : [outcome]);
};

const document30 = async () => {
  const { Parser } = packages("@asyncapi/parser");
  const headers = { Authorization: `Bearer ${token}` };
  const answer = await fetch(`http://${address}/asyncapi.json`, { headers });
  const { document, diagnostics } = await new Parser().parse(await answer.text());
  const errors = diagnostics.filter(({ severity }) => severity === 0);
  const problems = errors.map(({ message, path }) => `${path.join(".")}: ${message}`);
  if (document?.version() !== "3.0.0") problems.push(`version ${document?.version()}`);
  const sent = document?.operations().filterBySend().length;
  if (sent !== 1) problems.push(`${sent} operations send`);
  check("is described by a valid AsyncAPI document", problems);
};

const main = async () => {
  await document30();
  const browser = await launch();
  try {
    const problems = [];
    const found = [];
    for (const width of WIDTHS) {
      for (const scheme of ["light", "dark"]) {
        const page = await open(browser, width, scheme, problems);
        found.push(await page.evaluate(inspect));
        if (width === WIDTHS[0] && scheme === "light") {
          await pause(page);
          await letters(page);
        }
        await page.close();
      }
    }
    check("opens without an error and asks nobody else", problems);
    check("names every field", found.flatMap(({ unnamed }) => unnamed));
    check("has enough contrast", found.flatMap(({ pale }) => pale));
    check("fits its window", found.filter(({ scroll, width }) => scroll > width)
      .map(({ scroll, width }) => `${scroll} of ${width} px`));
  } finally {
    await browser.close();
  }
};

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
