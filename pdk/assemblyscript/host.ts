// What crosses between guest and host: texts, and the bytes that are pending.
@external("hako:core/1", "take") declare function hostTake(p: usize): void;

export function encode(text: string): ArrayBuffer { return String.UTF8.encode(text, false, String.UTF8.ErrorMode.REPLACE); }
export function address(data: ArrayBuffer): usize { return changetype<usize>(data); }

export function takeBytes(length: i32): ArrayBuffer {
  const data = new ArrayBuffer(length);
  hostTake(address(data));
  return data;
}

export function take(length: i32): string { return String.UTF8.decode(takeBytes(length)); }
