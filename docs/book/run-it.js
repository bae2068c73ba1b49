// "Run it" puts the playground in the place of the picture above it, and back. Without this script it is a link to the same page.
for (const link of document.querySelectorAll(".run-it a")) {
  const place = link.closest(".run-it");
  const before = place.previousElementSibling;
  const picture = before?.querySelector("img") ? before : null;
  const text = link.textContent;
  let frame = null;
  link.addEventListener("click", (event) => {
    // A new tab or window, if that is what the reader asks for.
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    if (frame) {
      frame.remove();
      frame = null;
    } else {
      frame = document.createElement("iframe");
      frame.src = `${link.href}&embed`;
      frame.title = place.textContent;
      place.before(frame);
    }
    if (picture) picture.hidden = frame !== null;
    link.textContent = frame ? "Close the playground" : text;
  });
}
