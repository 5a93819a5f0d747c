// Draws `profile`: one band a thread, windows in a thin row, what ran below it by depth.
(() => {
  const box = document.getElementById("timeline");
  if (!box) return;
  const canvas = box.querySelector("canvas"), tip = document.getElementById("tip");
  const context = canvas.getContext("2d");
  const HEAD = 20, WINDOWS = 8, LANE = 20, GAP = 12, AXIS = 20;
  const COLORS = {  // by kind: a property of the page
    kernel: "--kernel", command: "--kernel", "library call": "--library-call", copy: "--copy", check: "--copy",
    run: "--run", sync: "--sync", flush: "--flush", compile: "--compile", "guard failure": "--failed",
    hot: "--hot", warm: "--warm", cold: "--cold", "guard failed": "--failed",
  };
  const depths = profile.threads.map(t => t.events.reduce((most, e) => Math.max(most, e[4] + 1), 0));
  const height = AXIS + depths.reduce((sum, d) => sum + HEAD + WINDOWS + d * LANE + GAP, 0);
  let begin = 0, span = profile.duration || 1, width = 0, placed = [];

  const style = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const time = us => us >= 1e6 ? (us / 1e6).toPrecision(4) + " s"
    : us >= 1e3 ? (us / 1e3).toPrecision(4) + " ms" : us.toPrecision(3) + " µs";
  const x = at => (at - begin) / span * width;

  function axis(ink, line) {
    const raw = span / Math.max(3, width / 120), power = 10 ** Math.floor(Math.log10(raw));
    const step = power * [1, 2, 5, 10].find(m => m * power >= raw);
    context.fillStyle = ink;
    context.strokeStyle = line;
    for (let at = Math.ceil(begin / step) * step; at <= begin + span; at += step) {
      const left = Math.round(x(at)) + 0.5;
      context.beginPath();
      context.moveTo(left, 0);
      context.lineTo(left, height);
      context.stroke();
      context.fillText(at === 0 ? "0" : time(at), left + 4, 9);
    }
  }

  function slice(event, top, tall, colors, paper) {
    const left = Math.max(x(event[2]), -1), right = Math.min(x(event[2] + event[3]), width + 1);
    if (right < 0 || left > width) return;
    const wide = Math.max(right - left - (right - left > 4 ? 0.5 : 0), 1);
    context.fillStyle = colors[profile.kinds[event[0]]];
    context.fillRect(left, top, wide, tall - 1);
    placed.push([left, top, Math.max(wide, 3), tall, event]);
    if (wide < 46 || tall < LANE) return;
    context.save();
    context.beginPath();
    context.rect(left, top, wide - 4, tall);
    context.clip();
    context.fillStyle = profile.kinds[event[0]] === "run" ? style("--ink") : paper;
    context.fillText(profile.names[event[1]], left + 5, top + tall / 2);
    context.restore();
  }

  function draw() {
    const scale = window.devicePixelRatio || 1;
    width = canvas.clientWidth;
    canvas.width = width * scale;
    canvas.height = height * scale;
    canvas.style.height = height + "px";
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    const ink = style("--quiet"), paper = style("--card");
    const colors = Object.fromEntries(Object.entries(COLORS).map(([kind, name]) => [kind, style(name)]));
    context.clearRect(0, 0, width, height);
    axis(ink, style("--line"));
    placed = [];
    let top = AXIS;
    profile.threads.forEach((thread, i) => {
      context.fillStyle = ink;
      context.fillText(thread.name, 4, top + HEAD / 2);
      top += HEAD;
      for (const event of thread.events) {
        if (event[4] < 0) slice(event, top, WINDOWS, colors, paper);
        else slice(event, top + WINDOWS + event[4] * LANE, LANE, colors, paper);
      }
      top += WINDOWS + depths[i] * LANE + GAP;
    });
  }

  function zoom(factor, around) {
    const whole = profile.duration || 1, at = begin + span * around;
    span = factor === 0 ? whole : Math.min(whole, Math.max(span * factor, 0.5));
    begin = factor === 0 ? 0 : at - span * around;
    move(0);
  }

  function move(by) {
    begin = Math.max(0, Math.min(begin + by, (profile.duration || 1) - span));
    draw();
  }

  function show(pointer) {
    const area = canvas.getBoundingClientRect(), px = pointer.clientX - area.left, py = pointer.clientY - area.top;
    const hit = placed.findLast(([left, top, wide, tall]) => px >= left && px <= left + wide && py >= top && py < top + tall);
    tip.hidden = !hit;
    if (!hit) return;
    const event = hit[4], place = profile.places[event[5]];
    tip.textContent = profile.names[event[1]] + "\n" + time(event[3]) + (place ? "\n" + place : "");
    const frame = box.getBoundingClientRect(), left = pointer.clientX - frame.left + 12;
    tip.style.left = Math.max(4, Math.min(left, box.clientWidth - tip.offsetWidth - 8)) + "px";
    tip.style.top = pointer.clientY - frame.top + 14 + "px";
  }

  let dragged = null;
  canvas.addEventListener("pointerdown", e => { dragged = e.clientX; canvas.setPointerCapture(e.pointerId); });
  canvas.addEventListener("pointerup", e => { dragged = null; show(e); });
  canvas.addEventListener("pointercancel", () => { dragged = null; });
  canvas.addEventListener("pointermove", e => {
    if (dragged === null) return show(e);
    move((dragged - e.clientX) / width * span);
    dragged = e.clientX;
    tip.hidden = true;
  });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  canvas.addEventListener("wheel", e => {
    if (!e.ctrlKey && !e.metaKey) return;
    e.preventDefault();
    zoom(Math.exp(e.deltaY / 300), e.offsetX / width);
  }, { passive: false });
  canvas.addEventListener("keydown", e => {
    const act = { ArrowLeft: () => move(-span / 8), ArrowRight: () => move(span / 8),
                  ArrowUp: () => zoom(0.7, 0.5), ArrowDown: () => zoom(1.4, 0.5) }[e.key];
    if (act) { e.preventDefault(); act(); }
  });
  for (const button of box.querySelectorAll("button"))
    button.addEventListener("click", () => zoom(Number(button.dataset.zoom), 0.5));

  const shown = new Set(profile.threads.flatMap(t => t.events.map(e => profile.kinds[e[0]])));
  const legend = document.getElementById("timeline-legend");
  for (const kind of Object.keys(COLORS)) {
    if (!shown.has(kind)) continue;
    const entry = document.createElement("li"), mark = document.createElement("i");
    mark.style.background = `var(${COLORS[kind]})`;
    entry.append(mark, ["hot", "warm", "cold"].includes(kind) ? kind + " window" : kind);
    legend.append(entry);
  }
  new ResizeObserver(draw).observe(box);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
})();
