// The live connection: reports changes, notices when it is silent, and reconnects.

import { apiUrl } from "./links.js";

const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 10_000;
const SILENCE_FACTOR = 2.5;

export function follow({ onChange, onLive, onLost }) {
  let retry = FIRST_RETRY_MS;
  let silence;

  function connect() {
    const stream = new EventSource(apiUrl("stream"));
    let patience = 15_000 * SILENCE_FACTOR;

    function lose() {
      clearTimeout(silence);
      stream.close();
      onLost();
      setTimeout(connect, retry);
      retry = Math.min(retry * 2, LONGEST_RETRY_MS);
    }

    function heard() {
      clearTimeout(silence);
      silence = setTimeout(lose, patience);
    }

    stream.addEventListener("hello", (event) => {
      patience = JSON.parse(event.data).heartbeat * 1000 * SILENCE_FACTOR;
      retry = FIRST_RETRY_MS;
      heard();
      onLive();
    });
    stream.addEventListener("change", () => {
      heard();
      onChange();
    });
    stream.addEventListener("heartbeat", heard);
    stream.addEventListener("error", lose, { once: true });
    heard();
  }

  connect();
}
