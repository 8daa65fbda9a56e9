// What is asked of a page (tests/browser.py).
const shownElements = () => [...document.body.querySelectorAll("*")].filter((one) => one.checkVisibility() && one.getClientRects().length);
const named = (one) => `<${one.tagName.toLowerCase()} id="${one.id}" class="${one.getAttribute("class") || ""}"> `
  + one.textContent.trim().slice(0, 40);

/* Elements that reach beyond the page, and elements whose text is wider than they are. */
function misfits() {
  const width = document.documentElement.clientWidth, pen = document.createElement("canvas").getContext("2d");
  const texts = (one) => one.tagName === "SELECT" ? [...one.options].map((each) => each.text) : one.placeholder ? [one.placeholder] : [];
  const needed = (one, text) => {
    const style = getComputedStyle(one);
    pen.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    return pen.measureText(text).width + parseFloat(style.paddingLeft) + parseFloat(style.paddingRight) + (one.tagName === "SELECT" ? 18 : 0);
  };
  const all = shownElements().filter((one) => !one.closest("svg *"));
  return [...all.filter((one) => one.getBoundingClientRect().right > width + 1).map((one) => `beyond ${width} px: ${named(one)}`),
    ...all.filter((one) => one.clientWidth && one.scrollWidth > one.clientWidth + 1).map((one) => `cut: ${named(one)}`),
    ...all.filter((one) => texts(one).some((text) => needed(one, text) > one.clientWidth)).map((one) => `cut: ${named(one)} ${texts(one)}`)];
}

/* [ratio, text] of what has less contrast than 4.5 : 1 (WCAG 2.1, 1.4.3). */
function faint() {
  const parts = (colour) => colour.match(/[\d.]+/g).map(Number);
  const light = (colour) => {
    const [r, g, b] = parts(colour).slice(0, 3).map((value) => { const one = value / 255;
      return one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const found = getComputedStyle(at).backgroundColor, seen = parts(found);
      if (seen.length < 4 || seen[3] > 0) return found;
    }
    return "rgb(255, 255, 255)";
  };
  const ratio = (one) => {
    const ink = one instanceof SVGElement ? getComputedStyle(one).fill : getComputedStyle(one).color;
    const [more, less] = [light(ink), light(ground(one))].sort((a, b) => b - a);
    return (more + 0.05) / (less + 0.05);
  };
  return shownElements().filter((one) => [...one.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim()))
    .map((one) => [ratio(one), one.textContent.trim().slice(0, 40)]).filter(([found]) => found < 4.5);
}
