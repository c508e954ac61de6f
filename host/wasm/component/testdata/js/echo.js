let calls = 0;

export function echo(text) {
  return text;
}

export function count() {
  return ++calls;
}

export function crash() {
  throw new Error("crashed as asked");
}

export function dice() {
  return Math.random();
}

export function now() {
  return Date.now();
}
