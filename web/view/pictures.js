// Cameras: each chosen topic as it arrives, as large as there is room, with the age of what is seen.
'use strict';

const picturesView = {
  chosen: new Set(),
  shown: new Map(),
  key: '',

  topics() { return catalog.topics.filter((topic) => ['image', 'compressed'].includes(topic.kind)); },

  draw() {
    if (element('view-pictures').hidden) return;
    const topics = this.topics();
    // The first camera is what somebody who opens this view wants.
    if (!this.chosen.size && topics.length && !this.touched) { this.chosen.add(topics[0].name); look(); }
    const key = JSON.stringify([topics.map((topic) => topic.name), [...this.chosen]]);
    if (key === this.key) return;
    this.key = key;
    drawChecks(element('picture-topics'), topics, this.chosen, () => { this.touched = true; });
    if (!topics.length) element('picture-topics').replaceChildren(note('No topic of sensor_msgs/Image or sensor_msgs/CompressedImage is published.'));
    const figures = [...this.chosen].map((name) => this.figure(name));
    element('picture-grid').replaceChildren(...figures);
  },

  figure(name) {
    const before = this.shown.get(name);
    if (before) return before.box;
    const box = document.createElement('figure');
    const canvas = box.appendChild(document.createElement('canvas'));
    [canvas.width, canvas.height] = [320, 180];
    canvas.setAttribute('role', 'img');
    canvas.setAttribute('aria-label', `picture of ${name}`);
    canvas.dataset.topic = name;
    const caption = box.appendChild(document.createElement('figcaption'));
    const text = caption.appendChild(document.createElement('span'));
    text.className = 'figure';
    text.textContent = `${name}  no picture yet`;
    caption.appendChild(document.createElement('span')).className = 'spread';
    const save = caption.appendChild(document.createElement('button'));
    save.textContent = 'PNG';
    save.addEventListener('click', () => exportCanvas(name.replace(/[^\w.-]+/g, '_'), canvas));
    this.shown.set(name, { box, canvas, text });
    return box;
  },

  async handlePicture(head, body) {
    const shown = this.shown.get(head.topic);
    if (!shown || !timeline.isFollowing() && timeline.mode === 'live') return;
    const { canvas, text } = shown;
    const said = `${head.topic}  ${ageText(head.age_ms, head.bound_ms)}`;
    if (head.why) { text.textContent = `${said}  ${head.why}`; return; }
    if (head.t === 'image') {
      [canvas.width, canvas.height] = [head.columns, head.rows];
      const pixels = new ImageData(head.columns, head.rows);
      for (let from = 0, to = 0; to < pixels.data.length; from += 3, to += 4) {
        pixels.data[to] = body.getUint8(from); pixels.data[to + 1] = body.getUint8(from + 1); pixels.data[to + 2] = body.getUint8(from + 2); pixels.data[to + 3] = 255;
      }
      canvas.getContext('2d').putImageData(pixels, 0, 0);
      const range = head.range ? `, ${head.range[0]} to ${head.range[1]}` : '';
      text.textContent = `${said}  ${head.width} × ${head.height} ${head.encoding}${range}`;
    } else {
      const bytes = new Uint8Array(body.buffer, body.byteOffset, body.byteLength);
      const bitmap = await createImageBitmap(new Blob([bytes], { type: head.mime })).catch(() => null);
      if (!bitmap) { text.textContent = `${said}  the browser cannot read this ${head.mime}`; return; }
      [canvas.width, canvas.height] = [bitmap.width, bitmap.height];
      canvas.getContext('2d').drawImage(bitmap, 0, 0);
      bitmap.close();
      text.textContent = `${said}  ${canvas.width} × ${canvas.height} ${head.mime.slice(6)}`;
    }
    canvas.dataset.sequence = String(head.sequence);
  },
};

// A box to tick for each topic.
function drawChecks(box, topics, chosen, changed) {
  box.classList.add('checks');
  box.replaceChildren(...topics.map((topic) => {
    const label = document.createElement('label');
    const tick = label.appendChild(document.createElement('input'));
    tick.type = 'checkbox';
    tick.checked = chosen.has(topic.name);
    tick.addEventListener('change', () => { if (tick.checked) chosen.add(topic.name); else chosen.delete(topic.name); changed(); look(); refresh(); });
    label.append(topic.name);
    return label;
  }));
}
