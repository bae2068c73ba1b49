"use strict";
// What the pages' scripts share: elements, and the deflated blocks in them.
const element = (id) => document.getElementById(id);

async function inflate(id) {
  const bytes = Uint8Array.from(atob(element(id).textContent.trim()), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
}

