// A file of records, in parts that a message may hold each.

const MOST_QUOTED = 6; // bytes of one character in JSON

export function* parts(text, most) {
  const size = Math.floor(most / MOST_QUOTED);
  let start = 0;
  do {
    let end = Math.min(start + size, text.length);
    if (end < text.length && /[\uD800-\uDBFF]/.test(text[end - 1])) end -= 1; // both halves of a character together
    yield { text: text.slice(start, end), more: end < text.length };
    start = end;
  } while (start < text.length);
}
