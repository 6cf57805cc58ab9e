// Navigation between the overview and the page of a pod without a reload. Focus and scroll position are kept.

import { overviewHref } from "./links.js";

export function installNavigation(showRoute) {
  history.scrollRestoration = "manual";
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    if (!link || !staysOnPage(link, event)) return;
    event.preventDefault();
    remember(link);
    history.pushState(null, "", link.href);
    go(showRoute, null);
  });
  addEventListener("popstate", (event) => go(showRoute, event.state));
}

function staysOnPage(link, event) {
  const plainClick = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
  const samePage = link.hash && link.pathname === location.pathname;
  return plainClick && !samePage && link.origin === location.origin
    && (link.pathname === overviewHref || link.pathname.startsWith(`${overviewHref}pods/`));
}

/** Saves scroll position and focus with the page that is left. */
function remember(link) {
  history.replaceState({ scroll: scrollY, href: link.getAttribute("href") }, "");
}

async function go(showRoute, left) {
  await showRoute();
  const back = left?.href && [...document.querySelectorAll("main a[href]")].find((link) => visible(link) && link.getAttribute("href") === left.href);
  const target = back || [...document.querySelectorAll("main h1")].find(visible);
  target?.focus({ preventScroll: true });
  scrollTo({ top: left?.scroll ?? 0 });
}

const visible = (element) => element.closest("[hidden]") === null;
