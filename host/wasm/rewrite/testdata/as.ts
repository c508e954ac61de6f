// Small computations with classes, closures over tables, strings and a garbage-collected heap; built with
// asc as.ts -o as.wasm -O2 --runtime incremental --exportRuntime.
class Node {
  next: Node | null = null;
  constructor(public value: i32) {}
}

export function list(n: i32): i32 {
  let head: Node | null = null;
  for (let i = 0; i < n; i++) {
    const node = new Node(i * 31);
    node.next = head;
    head = node;
  }
  let sum = 0;
  let node = head;
  while (node) {
    sum = sum * 7 + node.value;
    node = node.next;
  }
  return sum;
}

export function text(n: i32): i32 {
  let s = "";
  for (let i = 0; i < n; i++) s += i.toString() + ",";
  const parts = s.split(",");
  let hash = 5381;
  for (let i = 0; i < parts.length; i++) for (let k = 0; k < parts[i].length; k++) hash = hash * 33 + parts[i].charCodeAt(k);
  return hash;
}

export function sort(n: i32): i64 {
  const numbers = new Array<f64>();
  for (let i = 0; i < n; i++) numbers.push(Math.sin(i as f64) * 1000);
  numbers.sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  let hash: i64 = 0;
  for (let i = 0; i < n; i++) hash = hash * 31 + (numbers[i] as i64);
  return hash;
}

export function map(n: i32): i32 {
  const m = new Map<string, i32>();
  for (let i = 0; i < n; i++) m.set((i % 97).toString(), i);
  let sum = 0;
  const keys = m.keys();
  for (let i = 0; i < keys.length; i++) sum += m.get(keys[i]);
  return sum;
}

export function fib(n: i32): i32 {
  return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

export function bounds(n: i32): i32 {
  const numbers = new StaticArray<i32>(10);
  return numbers[n];
}
