"""The contrast of every text on a page with what is behind it, as WCAG 2 measures it."""

from __future__ import annotations

from typing import Any

LOW_CONTRAST = """() => {
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  const parse = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const channel = (x) => (x / 255 <= 0.03928 ? x / 255 / 12.92 : ((x / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
  const COLOUR = /(?:rgba?|color)\\((?:[^()]*)\\)/g;
  const layers = (style) => [...(style.backgroundImage.match(COLOUR) ?? []), style.backgroundColor].map(parse);
  // Every colour that may be behind an element: of a gradient each of its colours counts alone.
  const behind = (element) => {
    if (!element) return [[255, 255, 255, 1]];
    const style = getComputedStyle(element), below = behind(element.parentElement), found = layers(style);
    const plain = found.pop();
    const grounds = below.map((one) => over(plain, one));
    return found.length ? found.flatMap((top) => grounds.map((one) => over(top, one))) : grounds;
  };
  const hidden = '.unseen, .skip, [hidden], dialog:not([open]), noscript, option, :disabled, [aria-hidden="true"]';
  const low = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  while (walk.nextNode()) {
    const text = walk.currentNode.textContent.trim(), element = walk.currentNode.parentElement;
    if (!text || element.closest(hidden) || !element.checkVisibility()) continue;
    const style = getComputedStyle(element), size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const worst = Math.min(...behind(element).map((one) => ratio(over(parse(style.color), one), one)));
    seen += 1;
    if (worst < (large ? 3 : 4.5)) low.push(`${worst.toFixed(2)} ${element.tagName}.${element.className}: ${text}`);
  }
  return { seen, low };
}"""


def check_contrast(page: Any, least: int = 10) -> None:
    """Fails where a text has less contrast than 4.5, or 3 if it is large, or there are too few texts to be a page."""
    found = page.evaluate(LOW_CONTRAST)
    assert not found["low"], found["low"]
    assert found["seen"] >= least, found["seen"]
