"use strict";
(() => {
  const { names, profiles } = JSON.parse(document.getElementById("flames").textContent);
  const find = (part) => document.querySelector(`[data-flame-${part}]`);
  const [subject, other, search, back, graph, detail] =
    ["subject", "other", "search", "back", "graph", "detail"].map(find);
  const row = 19;
  const narrowest = 0.002;

  // Nodes come as depth, name and samples, each before what it called.
  const treeOf = (profile) => {
    const root = { name: "all", samples: profile.samples, share: 1, below: [], up: null };
    const open = [root];
    for (let at = 0; at < profile.nodes.length; at += 3) {
      const [depth, name, samples] = profile.nodes.slice(at, at + 3);
      const up = open[depth];
      const node = { name: names[name], samples, share: samples / profile.samples, below: [], up };
      up.below.push(node);
      open.length = depth + 1;
      open.push(node);
    }
    return root;
  };
  const trees = profiles.map(treeOf);
  const label = ({ arm, role, case: name }) => `${name}: ${arm}, ${role}`;
  const percent = (share) => `${(100 * share).toFixed(2)} %`;

  // How the share of each frame differs from that of the same path in another tree.
  const compare = (node, before) => {
    node.change = node.share - (before ? before.share : 0);
    const paths = new Map((before ? before.below : []).map((below) => [below.name, below]));
    let most = node.up ? Math.abs(node.change) : 0;
    for (const below of node.below) most = Math.max(most, compare(below, paths.get(below.name)));
    return most;
  };

  let root = null;
  let zoomed = null;
  let most = 0;

  const colour = (node) => {
    if (other.value !== "") {
      const strength = most > 0 ? Math.round(12 + 60 * Math.sqrt(Math.abs(node.change) / most)) : 0;
      const hue = node.change > 0 ? "var(--b)" : "var(--a)";
      return node.change === 0 ? "var(--line)" : `color-mix(in srgb, ${hue} ${strength}%, var(--card))`;
    }
    let hash = 0;
    for (const letter of node.name) hash = (hash * 31 + letter.codePointAt(0)) >>> 0;
    return `light-dark(hsl(${18 + (hash % 36)} 82% 78%), hsl(${18 + (hash % 36)} 46% 34%))`;
  };
  const tell = (node) => {
    const compared = other.value === "" ? ""
      : `, ${node.change >= 0 ? "+" : ""}${(100 * node.change).toFixed(2)} points`;
    return `${node.name}: ${percent(node.share)}${compared}, ${node.samples} samples`;
  };

  const draw = () => {
    const wanted = search.value.trim().toLowerCase();
    const frames = [];
    let depths = 0;
    let found = 0;
    const place = (node, left, width, depth, counted) => {
      const matches = wanted !== "" && node.name.toLowerCase().includes(wanted);
      if (matches && !counted) found += node.share;
      if (width >= narrowest) {
        const frame = document.createElement("button");
        frame.type = "button";
        frame.className = matches ? "frame found" : "frame";
        frame.style.cssText = `left:${100 * left}%;width:${100 * width}%;top:${depth * row}px`;
        frame.style.background = matches ? "" : colour(node);
        frame.title = tell(node);
        frame.textContent = node.name;
        frame.addEventListener("click", () => { zoomed = node; draw(); });
        frame.addEventListener("focus", () => { detail.textContent = tell(node); });
        frame.addEventListener("mouseenter", () => { detail.textContent = tell(node); });
        frames.push(frame);
        depths = Math.max(depths, depth + 1);
      }
      let at = left;
      for (const below of node.below) {
        const share = width * (below.samples / node.samples);
        place(below, at, share, depth + 1, counted || matches);
        at += share;
      }
    };
    const above = [];
    for (let node = zoomed.up; node; node = node.up) above.unshift(node);
    above.forEach((node, depth) => place({ ...node, below: [] }, 0, 1, depth, true));
    place(zoomed, 0, 1, above.length, false);
    above.forEach((node, depth) => {
      frames[depth].addEventListener("click", () => { zoomed = node; draw(); });
    });
    graph.replaceChildren(...frames);
    graph.style.height = `${depths * row}px`;
    detail.textContent = wanted === "" ? tell(zoomed) : `${percent(found)} of all samples match`;
    back.disabled = zoomed === root;
  };

  const compared = () => {
    most = other.value === "" ? 0 : compare(root, trees[Number(other.value)]);
    draw();
  };
  const choose = () => {
    const at = Number(subject.value);
    root = trees[at];
    zoomed = root;
    const fits = (profile, index) => index !== at
      && profile.case === profiles[at].case && profile.role === profiles[at].role;
    other.replaceChildren(new Option("nothing", ""));
    profiles.forEach((profile, index) => {
      if (fits(profile, index)) other.add(new Option(profile.arm, index));
    });
    compared();
  };
  profiles.forEach((profile, index) => subject.add(new Option(label(profile), index)));
  subject.addEventListener("change", choose);
  other.addEventListener("change", compared);
  search.addEventListener("input", draw);
  back.addEventListener("click", () => { zoomed = root; draw(); });
  choose();
})();
