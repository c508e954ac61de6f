package confine

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
)

// The command's network namespace has only a loopback interface. Before the command starts, the child opens listeners
// there and passes them to the host, which accepts connections on them.

// serveNetwork receives the child's listeners and runs serve on them until stop is called. stop closes the listeners
// and waits for serve.
func (c *child) serveNetwork(ctx context.Context, spec *Spec, serve func(context.Context,
	[]net.Listener)) (stop func(), err error) {
	if len(spec.Listen) == 0 || !Check().Namespaces {
		return func() {}, nil
	}
	files, err := receiveFiles(ctx, c.network, len(spec.Listen))
	if err != nil {
		return nil, err
	}
	if files == nil {
		return func() {}, nil // the child reports the reason
	}
	listeners, err := listenersOf(files)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { serve(ctx, listeners) })
	return func() {
		cancel()
		for _, l := range listeners {
			_ = l.Close()
		}
		running.Wait()
	}, nil
}

// listenersOf converts open files to listeners and closes the files.
func listenersOf(files []*os.File) ([]net.Listener, error) {
	var listeners []net.Listener
	var errs []error
	for _, file := range files {
		l, err := net.FileListener(file)
		if errs = append(errs, err, file.Close()); err == nil {
			listeners = append(listeners, l)
		}
	}
	if err := errors.Join(errs...); err != nil {
		for _, l := range listeners {
			_ = l.Close()
		}
		return nil, err
	}
	return listeners, nil
}
