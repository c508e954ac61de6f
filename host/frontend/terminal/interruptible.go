package terminal

import (
	"context"
	"io"
)

// Interruptible returns a reader of in whose Read fails as soon as ctx ends, also in the middle of a question. One Read
// of in may still be waiting then.
func Interruptible(ctx context.Context, in io.Reader) io.Reader {
	reader, writer := io.Pipe()
	go func() {
		_, err := io.Copy(writer, in)
		_ = writer.CloseWithError(err) // never fails
	}()
	context.AfterFunc(ctx, func() { _ = reader.CloseWithError(ctx.Err()) })
	return reader
}
