// The one script that stands in the file as it is: it unzips styles and scripts of the page, which the policy
// knows by their hashes, and puts them in. Of a file that was cut short the sentence stays.
(async () => {
  const bytes = Uint8Array.from(atob(document.getElementById("mx-code").textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const texts = await new Response(stream).json();
  ["style", "script"].forEach((tag, i) => document.body.append(Object.assign(document.createElement(tag), { textContent: texts[i] })));
})();
