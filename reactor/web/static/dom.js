// Creates elements and patches them in place. Text only becomes text nodes, because names from the cluster may be hostile.

/** An element. Attributes that are null, undefined or false are left out; true is an empty attribute. */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** Makes the children of `parent` look like `children`, keeping elements, focus and scroll where they are. */
export function show(parent, ...children) {
  const wanted = parent.cloneNode(false);
  wanted.append(...children.flat().filter(Boolean));
  morphChildren(parent, wanted);
}

function morph(current, wanted) {
  if (current.nodeType !== wanted.nodeType || current.nodeName !== wanted.nodeName) {
    current.replaceWith(wanted);
  } else if (current.nodeType === Node.TEXT_NODE) {
    if (current.data !== wanted.data) current.data = wanted.data;
  } else {
    morphAttributes(current, wanted);
    if (!current.hasAttribute("data-own")) morphChildren(current, wanted);
  }
}

function morphAttributes(current, wanted) {
  for (const { name } of [...current.attributes]) {
    // The reader decides whether details are open, not the data.
    if (!wanted.hasAttribute(name) && name !== "open") current.removeAttribute(name);
  }
  for (const { name, value } of wanted.attributes) {
    if (current.getAttribute(name) !== value) current.setAttribute(name, value);
  }
}

function morphChildren(current, wanted) {
  const next = [...wanted.childNodes];
  const kept = dropUnwanted(current, new Set(next.map(keyOf).filter(Boolean)));
  let place = current.firstChild;
  for (const child of next) {
    const key = keyOf(child);
    const match = key ? kept.get(key) : place && !keyOf(place) ? place : null;
    if (!match) {
      current.insertBefore(child, place);
      continue;
    }
    if (match === place) place = place.nextSibling;
    else moveBefore(current, match, place);
    morph(match, child);
  }
  while (place) {
    const last = place;
    place = place.nextSibling;
    remove(last);
  }
}

function dropUnwanted(parent, keys) {
  const kept = new Map();
  for (const child of [...parent.children]) {
    const key = keyOf(child);
    if (!key) continue;
    if (keys.has(key)) kept.set(key, child);
    else remove(child);
  }
  return kept;
}

function keyOf(node) {
  return node.dataset?.key ?? "";
}

/** If the focused element is removed, the next one gets the focus, not the top of the page. */
function remove(node) {
  if (node.contains(document.activeElement)) {
    const sibling = node.nextElementSibling ?? node.previousElementSibling;
    sibling?.querySelector("a, button, summary")?.focus({ preventScroll: true });
  }
  node.remove();
}

function moveBefore(parent, node, place) {
  const focused = node.contains(document.activeElement) ? document.activeElement : null;
  parent.insertBefore(node, place);
  focused?.focus({ preventScroll: true });
}
