// A file of records, cut to what one message may hold.

const encoder = new TextEncoder();
const size = (text) => encoder.encode(JSON.stringify(text)).length;

// The rounds at the beginning of a file of one round a line, and how many the file holds; all of a file that fits.
// null: the file is too large and not of lines, or its first line is too long.
export function cut(text, most) {
  if (size(text) <= most) return { text, held: null };
  const lines = text.split("\n");
  if (!isRound(lines.find((line) => line.trim()))) return null;
  let used = 2, kept = 0;
  for (const line of lines) {
    used += size(line); // the quotes of the line alone are as long as its end in the message
    if (used > most) break;
    kept += 1;
  }
  const found = lines.slice(0, kept).join("\n");
  return found.trim() ? { text: found, held: lines.filter((line) => line.trim()).length } : null;
}

function isRound(line) {
  if (/^[\d\s,]+$/.test(line)) return true;
  try {
    return typeof JSON.parse(line) === "object";
  } catch {
    return false;
  }
}
