"use strict";
(() => {
  const find = (id) => document.getElementById(id);
  const ROWS_MAX = 100;
  const POLL_MILLIS = 2000;
  const state = { key: "", topic: null, route: null, older: null, newest: 0 };

  // Text alone ever comes from the app: nothing of it is taken as markup.
  const make = (name, text, attributes = {}) => {
    const element = document.createElement(name);
    if (text !== undefined && text !== null) element.textContent = text;
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };

  const number = (value) => {
    if (value === null || value === undefined) return "–";
    if (Math.abs(value) >= 1e6) return `${(value / 1e6).toFixed(1)} M`;
    if (Math.abs(value) >= 1e4) return `${(value / 1e3).toFixed(1)} k`;
    return value >= 100 || Number.isInteger(value) ? String(Math.round(value)) : value.toFixed(1);
  };
  const duration = (micros) => {
    if (micros === null || micros === undefined) return "–";
    if (micros < 1000) return `${number(micros)} µs`;
    if (micros < 1e6) return `${number(micros / 1000)} ms`;
    return `${number(micros / 1e6)} s`;
  };
  const time = (millis) => new Date(millis).toLocaleTimeString();
  const date = (millis) => (millis < 0 ? "no time" : new Date(millis).toLocaleString());

  const problem = (text) => {
    find("problem").textContent = text;
    find("problem").hidden = !text;
  };

  const ask = async (path, body) => {
    const headers = {};
    const token = sessionStorage.getItem("token");
    if (token) headers.Authorization = `Bearer ${token}`;
    const options = { headers, credentials: "omit" };
    if (body) {
      options.method = "POST";
      options.body = JSON.stringify(body);
      headers["Content-Type"] = "application/json";
      headers["X-Moldau-Key"] = state.key;
    }
    const answer = await fetch(path, options);
    if (answer.status === 401) {
      sessionStorage.removeItem("token");
      find("token-form").hidden = false;
      find("content").hidden = true;
    }
    if (!answer.ok) throw new Error((await answer.text()).trim());
    return answer.json();
  };

  // Charts

  const NAMESPACE = "http://www.w3.org/2000/svg";
  const draw = (parent, name, attributes, text) => {
    const element = document.createElementNS(NAMESPACE, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  };

  const ceiling = (value) => {
    if (value <= 0) return 1;
    const power = 10 ** Math.floor(Math.log10(value));
    return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
  };

  // Each series is a tone, a name, and a value or null for each time.
  const chart = (id, times, series, format) => {
    const place = find(id);
    const [width, height] = [place.clientWidth || 320, 170];
    const [left, right, top, bottom] = [52, 8, 12, 22];
    const values = series.flatMap((it) => it.values).filter((it) => it !== null);
    const most = ceiling(Math.max(0, ...values));
    const last = (it) => format(it.values.findLast((value) => value !== null) ?? null);
    const label = series.map((it) => `${it.name}: ${last(it)}`).join(", ");
    const svg = document.createElementNS(NAMESPACE, "svg");
    svg.setAttribute("class", "chart");
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", label || "nothing yet");
    const y = (value) => top + (height - top - bottom) * (1 - value / most);
    for (const part of [0, 0.5, 1]) {
      const at = y(most * part);
      draw(svg, "line", { class: "grid", x1: left, x2: width - right, y1: at, y2: at });
      const place = { x: left - 8, y: at + 4, "text-anchor": "end" };
      draw(svg, "text", place, format(most * part));
    }
    const [from, to] = [times[0], times[times.length - 1]];
    const x = (at) => left + (width - left - right) * (to > from ? (at - from) / (to - from) : 1);
    if (times.length > 1) {
      const ends = [[from, "start"], [to, "end"]];
      for (const [at, anchor] of ends) {
        draw(svg, "text", { x: x(at), y: height - 5, "text-anchor": anchor }, time(at));
      }
    }
    for (const { tone, values: all } of series) {
      let path = "";
      let isOpen = false;
      all.forEach((value, index) => {
        if (value !== null) {
          path += `${isOpen ? "L" : "M"}${x(times[index]).toFixed(1)} ${y(value).toFixed(1)}`;
        }
        isOpen = value !== null;
      });
      if (path) draw(svg, "path", { class: tone, d: path });
      // A point between gaps has no line.
      all.forEach((value, index) => {
        const isAlone = (all[index - 1] ?? null) === null && (all[index + 1] ?? null) === null;
        if (value !== null && isAlone) {
          draw(svg, "circle", { class: tone, cx: x(times[index]), cy: y(value), r: 2.5 });
        }
      });
    }
    place.replaceChildren(svg);
  };

  const charts = ({ atMillis, elapsedMillis, routes, total }, count) => {
    const rate = (values) => values.map((it, at) => (1000 * it) / Math.max(1, elapsedMillis[at]));
    const tones = routes.map((route, at) => ({ name: route.topic, tone: `t${at}` }));
    const of = (pick) => routes.map((route, at) => ({ ...tones[at], values: pick(route) }));
    const all = { name: "all routes", tone: "t6" };
    const isMany = count > routes.length;
    const summed = (values) => (isMany ? [{ ...all, values: rate(values) }] : []);
    chart("chart-rate", atMillis, [...summed(total.handled), ...of((it) => rate(it.handled))],
      number);
    chart("chart-lag", atMillis, of((it) => it.lag), number);
    chart("chart-p99", atMillis, of((it) => it.p99Micros), duration);
    chart("chart-failed", atMillis, [...summed(total.failed), ...of((it) => rate(it.failed))],
      number);
    const entries = [...tones, ...(isMany ? [all] : [])];
    find("legend").replaceChildren(
      ...entries.map(({ name, tone }) => make("li", name, { class: tone })));
    return { rate, total };
  };

  // Tables

  const cell = (row, label, text, kind) => {
    const made = make("td", text, { "data-label": label });
    if (kind) made.className = kind;
    row.append(made);
    return made;
  };

  // Rows are kept by their name, so that a focus survives.
  const rows = (table, items, name, fill) => {
    const body = find(table).tBodies[0];
    const known = new Map([...body.rows].map((row) => [row.dataset.name, row]));
    const kept = items.map((item) => {
      const row = known.get(name(item)) ?? make("tr", null, { "data-name": name(item) });
      const focused = row.contains(document.activeElement);
      row.replaceChildren();
      fill(row, item);
      return [row, focused];
    });
    body.replaceChildren(...kept.map(([row]) => row));
    kept.filter(([, focused]) => focused).forEach(([row]) => row.querySelector("button")?.focus());
  };

  const sum = (values) => values.reduce((one, other) => one + other, 0);

  const routes = ({ routes: all, course }) => {
    const wanted = find("route-filter").value.toLowerCase();
    const shown = all.filter((route) => route.topic.toLowerCase().includes(wanted));
    const last = (topic) => {
      const known = course.routes.find((route) => route.topic === topic);
      const at = course.elapsedMillis.length - 1;
      if (!known || at < 0) return null;
      return (1000 * known.handled[at]) / Math.max(1, course.elapsedMillis[at]);
    };
    find("route-filter-line").hidden = all.length <= 10;
    rows("routes", shown.slice(0, ROWS_MAX), (route) => route.topic, (row, route) => {
      const isOpen = state.topic === route.topic;
      const open = make("button", route.topic,
        { type: "button", class: "link", "aria-expanded": isOpen });
      open.addEventListener("click", () => {
        state.topic = isOpen ? null : route.topic;
        state.route = isOpen ? null : all.indexOf(route);
        poll();
      });
      cell(row, "Topic").append(open);
      cell(row, "Records/s", number(last(route.topic)));
      cell(row, "Lag", number(route.lag));
      cell(row, "Running", number(route.running));
      cell(row, "Retrying", number(route.retrying), route.retrying ? "noted" : "");
      cell(row, "p99", duration(route.handlerP99Micros));
      const cpu = route.cpuPerRecordNanos;
      cell(row, "CPU/record", duration(cpu === null ? null : cpu / 1000));
      const failed = sum(route.failed.map(([, count]) => count));
      const kinds = route.failed.map(([kind, count]) => `${count} ${kind}`).join(", ");
      cell(row, "Failed", number(failed), failed ? "bad" : "").title = kinds;
      cell(row, "Dead letters", number(route.deadLetters), route.deadLetters ? "bad" : "");
      const paused = route.paused ? `${route.paused} of ${route.partitionCount}` : "–";
      cell(row, "Paused", paused, route.paused ? "noted" : "");
    });
    const more = shown.length - ROWS_MAX;
    find("routes-more").textContent = more > 0 ? `${more} more: filter them.` : "";
    partitions(all.find((route) => route.topic === state.topic));
  };

  const partitions = (route) => {
    find("partitions-section").hidden = !route;
    const all = route?.partitions ?? [];
    find("partitions-title").textContent = `Partitions of ${route?.topic ?? ""}`;
    const name = (it) => `${it.topic}-${it.partition}`;
    rows("partitions", all.slice(0, ROWS_MAX), name, (row, it) => {
      cell(row, "Partition", route.topic === it.topic ? String(it.partition) : name(it));
      cell(row, "Lag", number(it.lag));
      cell(row, "Done to", it.doneTo ?? "–");
      cell(row, "End", it.end ?? "–");
      cell(row, "Queued", number(it.queuedRecords));
      cell(row, "Running", number(it.running));
      cell(row, "Retrying", number(it.retrying), it.retrying ? "noted" : "");
      const stalled = it.stalledMillis > 10000
        ? `no progress for ${duration(1000 * it.stalledMillis)}` : "active";
      cell(row, "State", it.paused ?? stalled, it.paused || it.stalledMillis > 10000 ? "noted" : "");
      const isPaused = it.paused === "paused on request";
      const verb = isPaused ? "Resume" : "Pause";
      const button = make("button", verb, { type: "button", "aria-label": `${verb} ${name(it)}` });
      button.addEventListener("click", async () => {
        button.disabled = true;
        const wanted = { topic: it.topic, partition: it.partition, paused: !isPaused };
        try {
          await ask("/api/pause", wanted);
        } catch (error) {
          problem(error.message);
        }
        poll();
      });
      cell(row, "Action").append(button);
    });
    const more = all.length - ROWS_MAX;
    find("partitions-more").textContent = more > 0 ? `${more} more.` : "";
  };

  const failures = (all) => {
    const items = all.slice(0, 10).map((it) => {
      const item = make("li", it.cause);
      const where = `${it.topic}-${it.partition}@${it.offset}`;
      const what = `${time(it.atMillis)}, ${where}, attempt ${it.attempt}, ${it.kind}`;
      item.prepend(make("span", what, { class: "soft" }));
      return item;
    });
    find("failures").replaceChildren(...(items.length ? items : [make("li", "None.")]));
  };

  const tiles = (status, { rate, total }) => {
    const handled = rate(total.handled);
    const known = status.routes.map((route) => route.lag).filter((lag) => lag !== null);
    const p99 = status.routes.map((route) => route.handlerP99Micros);
    const slowest = p99.some((it) => it !== null) ? Math.max(...p99.map((it) => it ?? 0)) : null;
    const figures = [
      ["Records/s", number(handled.length ? handled[handled.length - 1] : null)],
      ["Lag", number(known.length ? sum(known) : null)],
      ["Partitions", number(sum(status.routes.map((route) => route.partitionCount)))],
      ["Slowest p99", duration(slowest)],
      ["Failed", number(sum(status.routes.flatMap((it) => it.failed.map(([, count]) => count))))],
      ["Dead letters", number(sum(status.routes.map((route) => route.deadLetters)))],
    ];
    find("tiles").replaceChildren(...figures.map(([name, value]) => {
      const tile = make("div");
      tile.append(make("dt", name), make("dd", value));
      return tile;
    }));
  };

  const head = ({ group, live, ready, member }) => {
    find("group").textContent = group;
    document.title = `${group} · Moldau consumer`;
    const verdict = live.ok ? ready : live;
    if (find("ready").textContent !== verdict.text) find("ready").textContent = verdict.text;
    find("ready").className = `verdict ${verdict.ok ? "good" : live.ok ? "" : "bad"}`;
    const age = member?.heartbeatAgeMillis;
    const heartbeat = age === null || age === undefined ? "" : `, heartbeat ${duration(1000 * age)} ago`;
    find("member").textContent =
      member ? `Member ${member.id}, epoch ${member.epoch}, ${member.stage}${heartbeat}` : "";
  };

  // Dead letters

  const topics = (all) => {
    const names = [...new Set(all.flatMap((route) => route.deadLetterTopics))].sort();
    find("letters-section").hidden = names.length === 0;
    const select = find("letters-topic");
    if ([...select.options].map((it) => it.value).join() === names.join()) return;
    select.replaceChildren(...names.map((name) => make("option", name, { value: name })));
    search(null);
  };

  // Indents JSON without a change of its numbers.
  const indented = (json) => {
    let [depth, isText, isEscaped, out] = [0, false, false, ""];
    const line = () => `\n${"  ".repeat(depth)}`;
    for (const letter of json) {
      if (isText) {
        out += letter;
        isText = isEscaped || letter !== '"';
        isEscaped = letter === "\\" && !isEscaped;
      } else if (letter === '"') {
        out += letter;
        isText = true;
      } else if ("{[".includes(letter)) {
        depth += 1;
        out += letter + line();
      } else if ("}]".includes(letter)) {
        depth -= 1;
        out += line() + letter;
      } else if (letter === ",") {
        out += letter + line();
      } else if (letter === ":") {
        out += ": ";
      } else if (letter.trim()) {
        out += letter;
      }
    }
    return out.replace(/([{[])\s+([}\]])/g, "$1$2");
  };

  const bytes = ({ form, text, bytes: length, isCut }) => {
    const place = make("dd");
    if (form === "null") {
      place.append(make("span", "null", { class: "soft" }));
      return place;
    }
    place.append(make("pre", form === "json" && !isCut ? indented(text) : text, { tabindex: "0" }));
    const about = [form === "binary" ? "hexadecimal" : "", isCut ? `cut, ${length} bytes` : ""];
    const said = about.filter(Boolean).join(", ");
    if (said) place.append(make("span", said, { class: "soft" }));
    return place;
  };

  const letterCard = (topic, it) => {
    const card = make("article", null, { class: "letter" });
    const name = `${topic}-${it.partition}@${it.offset}`;
    const origin = `${it.originTopic}-${it.originPartition}@${it.originOffset}`;
    const check = make("input", null, { type: "checkbox", "aria-label": `Select ${name}` });
    Object.assign(check.dataset, { partition: it.partition, offset: it.offset });
    const replay = make("button", "Replay", { type: "button", "aria-label": `Replay ${name}` });
    const outcome = make("p", it.replayed ? `Replayed at ${date(it.replayed)}.` : "",
      { class: "soft outcome", role: "status" });
    outcome.dataset.letter = `${it.partition}@${it.offset}`;
    replay.addEventListener("click", () => replayAll([[it.partition, it.offset]], [replay]));
    const head = make("header");
    head.append(check, make("h3", it.originTopic ? origin : name), replay);
    const about = `${date(it.timestamp)}, attempts ${it.attempts || "?"}, at ${name}`;
    const cause = make("p", it.cause || "no cause", { class: "cause" });
    if (it.kind) cause.prepend(make("strong", `${it.kind}: `, { class: "bad" }));
    const parts = make("dl");
    parts.append(make("dt", "Key"), bytes(it.key), make("dt", "Value"), bytes(it.value));
    for (const [key, value] of it.headers) parts.append(make("dt", key), bytes(value));
    card.append(head, make("p", about, { class: "soft" }), cause, parts, outcome);
    return card;
  };

  const search = async (older) => {
    const [topic, filter] = [find("letters-topic").value, find("letters-filter").value.trim()];
    const said = find("letters-said");
    const mine = state.newest += 1;
    said.textContent = "Searching";
    try {
      const wanted = { topic, filter, ...(older ? { before: older } : {}) };
      const found = await ask("/api/dead-letters", wanted);
      if (mine !== state.newest) return;
      const cards = found.letters.map((it) => letterCard(topic, it));
      if (older) find("letters").append(...cards);
      else find("letters").replaceChildren(...cards);
      state.older = Object.keys(found.older).length ? found.older : null;
      const shown = find("letters").children.length;
      said.textContent = shown
        ? `${shown} shown${filter ? `, ${found.searched} searched last` : ""}.`
        : `None${filter ? ` among ${found.searched}` : ""}.`;
      find("letters-older").hidden = !state.older;
      find("letters-replay").hidden = find("letters-all").hidden = !shown;
    } catch (error) {
      said.textContent = error.message;
    }
  };

  const replayAll = async (letters, buttons) => {
    const topic = find("letters-topic").value;
    const tell = ({ partition, offset }, text, kind) => {
      const place = document.querySelector(`[data-letter="${partition}@${offset}"]`);
      if (place) [place.textContent, place.className] = [text, `outcome ${kind}`];
    };
    buttons.forEach((button) => { button.disabled = true; });
    try {
      for (let at = 0; at < letters.length; at += 100) {
        const outcomes = await ask("/api/replay", { topic, letters: letters.slice(at, at + 100) });
        for (const it of outcomes) {
          if (it.error) tell(it, it.error, "bad");
          else tell(it, `Replayed to ${it.to} at ${date(it.replayed)}.`, "good");
        }
      }
    } catch (error) {
      letters.forEach(([partition, offset]) => tell({ partition, offset }, error.message, "bad"));
    }
    buttons.forEach((button) => { button.disabled = false; });
  };

  const checks = () => [...find("letters").querySelectorAll("input[type=checkbox]")];

  find("letters-form").addEventListener("submit", (event) => {
    event.preventDefault();
    search(null);
  });
  find("letters-topic").addEventListener("change", () => search(null));
  find("letters-older").addEventListener("click", () => search(state.older));
  find("letters-all").addEventListener("click", () => {
    checks().forEach((check) => { check.checked = true; });
  });
  find("letters-replay").addEventListener("click", () => {
    const chosen = checks().filter((check) => check.checked);
    const letters = chosen.map(({ dataset }) => [Number(dataset.partition), Number(dataset.offset)]);
    if (!letters.length) find("letters-said").textContent = "Select letters first.";
    else replayAll(letters, [find("letters-replay")]);
  });
  find("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem("token", find("token").value);
    find("token").value = "";
    find("token-form").hidden = true;
    poll();
  });
  find("route-filter").addEventListener("input", () => poll());

  let timer = null;
  const poll = async () => {
    clearTimeout(timer);
    try {
      const status = await ask(`/api/status${state.topic ? `?route=${state.route}` : ""}`);
      state.key = status.key;
      find("content").hidden = false;
      problem("");
      head(status);
      tiles(status, charts(status.course, status.routes.length));
      routes(status);
      failures(status.failures);
      topics(status.routes);
    } catch (error) {
      const isAsked = !find("token-form").hidden;
      problem(error instanceof TypeError ? "The app does not answer." : error.message);
      if (isAsked) return;
    }
    timer = setTimeout(poll, POLL_MILLIS);
  };
  poll();
})();
