type Reporter = (message: string | null, file: string | null, line: u32) => void;
let reporter: Reporter | null = null;

/** Sets what reports an abort. The compiler needs abort before the rest of the PDK, so it cannot call that directly. */
export function setReporter(report: Reporter): void { reporter = report; }

/** What throw and failed assertions call. */
export function onAbort(message: string | null, file: string | null, line: u32, column: u32): void {
  const report = reporter;
  if (report !== null) report(message, file, line);
  unreachable();
}
