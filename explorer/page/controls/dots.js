// Points as a small picture: [[x, y, shape, ink]], places from -1 to 1.
const SHAPES = {
  circle: (x, y) => `<circle cx="${x}" cy="${y}" r="2.4"/>`,
  triangle: (x, y) => `<path d="M${x} ${y - 3}l2.9 5h-5.8z"/>`,
  square: (x, y) => `<path d="M${x - 2.2} ${y - 2.2}h4.4v4.4h-4.4z"/>`,
  diamond: (x, y) => `<path d="M${x} ${y - 3}l3 3-3 3-3-3z"/>`,
};
const dotsOf = (points) => {
  const dots = points.map(([x, y, shape, colour]) =>
    `<g fill="var(--mx-${colour})">${SHAPES[shape]((50 + 30 * x).toFixed(1), (35 - 30 * y).toFixed(1))}</g>`);
  return `<svg viewBox="0 0 100 70" aria-hidden="true">${dots.join("")}</svg>`;
};
