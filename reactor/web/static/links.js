// URLs, relative to the URL of the scripts, so that the page works behind the path prefix of a proxy.

const BASE = new URL("../", import.meta.url);

export const overviewHref = BASE.pathname;

export function apiUrl(path, parameters = []) {
  const url = new URL(`api/v1/${path}`, BASE);
  for (const [name, value] of parameters) url.searchParams.append(name, value);
  return url;
}

export function podPath(namespace, name) {
  return `pods/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
}

export function podHref(key) {
  const cut = key.indexOf("/");
  return BASE.pathname + podPath(key.slice(0, cut), key.slice(cut + 1));
}

/** `{namespace, name}` on a pod's page, null on the overview. */
export function route() {
  const path = location.pathname.slice(BASE.pathname.length);
  const found = /^pods\/([^/]+)\/([^/]+)\/?$/.exec(path);
  return found && { namespace: decodeURIComponent(found[1]), name: decodeURIComponent(found[2]) };
}
