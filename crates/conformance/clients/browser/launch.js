// Starts the browser without a window and without a network of its own.

"use strict";

const { createRequire } = require("node:module");
const { pathToFileURL } = require("node:url");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");

// PEER_BROWSER is where the packages lie.
const packages = createRequire(path.join(process.env.PEER_BROWSER, "package.json"));

const launch = async () => {
  // The package brings the libraries of the browser along, and unpacks them where it is told so.
  process.env.AWS_LAMBDA_JS_RUNTIME ??= `nodejs${process.versions.node.split(".")[0]}.x`;
  process.env.LANG = "en_US.UTF-8";
  const unpacked = pathToFileURL(packages.resolve("@sparticuz/chromium"));
  const { default: chromium } = await import(unpacked);
  const puppeteer = packages("puppeteer-core");
  const executablePath = await chromium.executablePath();
  // Its own list of fonts names another directory, and a field of a form ends a browser that has
  // no font.
  const fonts = path.join(os.tmpdir(), "fonts.conf");
  fs.writeFileSync(fonts, `<?xml version="1.0"?>
<fontconfig><dir>${path.join(os.tmpdir(), "fonts")}</dir></fontconfig>
`);
  process.env.FONTCONFIG_FILE = fonts;
  return puppeteer.launch({ args: chromium.args, executablePath, headless: "shell" });
};

module.exports = { launch, packages };
