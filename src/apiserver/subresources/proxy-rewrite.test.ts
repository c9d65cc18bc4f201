import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { rewriteHtml, rewriteLink } from "./proxy-rewrite.ts";

const place = {
  prefix: "/api/v1/namespaces/ns/pods/web:80/proxy",
  targetHost: "10.0.0.5:80",
  requestHost: "127.0.0.1:6443",
};
const { prefix } = place;

describe("links of proxied answers", () => {
  for (const [link, expected] of [
    ["/rewriteme", `${prefix}/rewriteme`],
    ["/a/?q=/b#c", `${prefix}/a/?q=/b#c`],
    ["relative/x", "relative/x"],
    ["#top", "#top"],
    ["https://example.com/a", "https://example.com/a"],
    ["//example.com/a", "//example.com/a"],
    ["http://10.0.0.5:80/a", `https://127.0.0.1:6443${prefix}/a`],
    [`${prefix}/already`, `${prefix}/already`],
    ["mailto:a@b.c", "mailto:a@b.c"],
  ] as const)
    it(`${link} becomes ${expected}`, () => assert.equal(rewriteLink(link, place), expected));

  it("are found in the attributes that hold URLs, and nowhere else", () => {
    assert.equal(
      rewriteHtml(
        `<p title="/x">/y <a class='c' href="/z">t</a><IMG SRC=/i.png data-src="/j"><!-- <a href="/k"> -->`,
        place,
      ),
      `<p title="/x">/y <a class='c' href="${prefix}/z">t</a><IMG SRC=${prefix}/i.png data-src="/j"><!-- <a href="/k"> -->`,
    );
  });
});
