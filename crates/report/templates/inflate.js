"use strict";
// What the pages' scripts share: elements, and the deflated blocks in them.
const element = (id) => document.getElementById(id);

// A block, inflated (RFC 1950, RFC 1951). The browser's own DecompressionStream would answer later: a page could be loaded, and printed or
// photographed, before its charts are drawn.
function inflate(id) {
  const source = Uint8Array.from(atob(element(id).textContent.trim()), (c) => c.charCodeAt(0));
  let out = new Uint8Array(5 * source.length), length = 0, at = 2, bits = 0, count = 0;
  const need = (n) => { for (; count < n; count += 8) bits |= source[at++] << count; };
  const skip = (n) => { bits >>>= n; count -= n; };
  const take = (n) => { need(n); const value = bits & ((1 << n) - 1); skip(n); return value; };
  const symbol = ({ most, table }) => { need(most); const found = table[bits & ((1 << most) - 1)]; skip(found & 15); return found >> 4; };
  const room = (n) => {
    if (length + n <= out.length) return;
    const larger = new Uint8Array(2 * (length + n));
    larger.set(out);
    out = larger;
  };

  function codes() {
    const [literals, distances, n] = [take(5) + 257, take(5) + 1, take(4) + 4], first = new Array(19).fill(0), lengths = [];
    for (const place of ORDER.slice(0, n)) first[place] = take(3);
    const table = tableOf(first);
    while (lengths.length < literals + distances) {
      const code = symbol(table);
      if (code < 16) lengths.push(code);
      else if (code === 16) lengths.push(...new Array(3 + take(2)).fill(lengths.at(-1)));
      else lengths.push(...new Array(code === 17 ? 3 + take(3) : 11 + take(7)).fill(0));
    }
    return [tableOf(lengths.slice(0, literals)), tableOf(lengths.slice(literals))];
  }

  for (let isLast = 0; !isLast;) {
    isLast = take(1);
    const kind = take(2);
    if (kind === 0) {
      at -= count >> 3;
      bits = count = 0;
      const n = source[at] | (source[at + 1] << 8);
      room(n);
      out.set(source.subarray(at + 4, at + 4 + n), length);
      length += n;
      at += 4 + n;
      continue;
    }
    const [literals, distances] = kind === 1 ? FIXED : codes();
    for (let code = symbol(literals); code !== 256; code = symbol(literals)) {
      if (code < 256) {
        room(1);
        out[length++] = code;
        continue;
      }
      const n = LENGTHS[code - 257][0] + take(LENGTHS[code - 257][1]), distance = symbol(distances);
      const back = DISTANCES[distance][0] + take(DISTANCES[distance][1]);
      room(n);
      for (const end = length + n; length < end; length++) out[length] = out[length - back];
    }
  }
  return new TextDecoder().decode(out.subarray(0, length));
}

// Of a canonical code: for the next bits, the first of them lowest, the symbol and the length of its code.
function tableOf(lengths) {
  const most = Math.max(1, ...lengths), table = new Uint16Array(1 << most);
  for (let length = 1, code = 0; length <= most; length++, code <<= 1) {
    lengths.forEach((own, symbol) => {
      if (own !== length) return;
      let reversed = 0;
      for (let bit = 0; bit < length; bit++) reversed |= ((code >> bit) & 1) << (length - 1 - bit);
      for (let i = reversed; i < 1 << most; i += 1 << length) table[i] = (symbol << 4) | length;
      code++;
    });
  }
  return { most, table };
}

// RFC 1951 §3.2.5 to §3.2.7: base values and extra bits of lengths and distances, the fixed codes, the order of code lengths.
const stepped = (count, first, extraOf) => {
  const steps = [];
  for (let i = 0, base = first; i < count; base += 1 << extraOf(i++)) steps.push([base, extraOf(i)]);
  return steps;
};
const LENGTHS = [...stepped(28, 3, (i) => Math.max(0, (i >> 2) - 1)), [258, 0]];
const DISTANCES = stepped(30, 1, (i) => Math.max(0, (i >> 1) - 1));
const FIXED = [tableOf([...Array(288).keys()].map((i) => (i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8))), tableOf(new Array(30).fill(5))];
const ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
