package host_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/leaktest"
	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/background"
	"github.com/hako-run/hako/host/app/backup"
	"github.com/hako-run/hako/host/brokers/file"
	hostdatabase "github.com/hako-run/hako/host/brokers/sqlbroker/database"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/agent"
	"github.com/hako-run/hako/host/frontend/mcpserver"
	"github.com/hako-run/hako/host/frontend/mcpserver/sessionstore"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/govern/quota"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/host/secret"
	"github.com/hako-run/hako/host/store/drivers"
	"github.com/hako-run/hako/host/upstream/mcpclient"
)

// TestConstructorsThatFail: what a constructor has opened before it fails is closed.
func TestConstructorsThatFail(t *testing.T) {
	t.Parallel()
	hello := plugin(t, "hello", "license: Apache-2.0",
		"license: Apache-2.0\npermissions:\n  files: [{mount: workspace, "+
			"access: read-write, reason: r}]")
	leaktest.Run(t, map[string]leaktest.Construct{
		"store": func(ctx context.Context, dir string) (func() error, error) {
			return leaktest.Closer(drivers.Open(ctx, dir, nil))
		},
		"users of the store": func(ctx context.Context, dir string) (_ func() error, err error) {
			s, err := drivers.Open(context.Background(), dir, nil)
			if err != nil {
				return nil, err
			}
			if _, err := approval.New(ctx, s, nil); err != nil {
				return nil, errors.Join(err, s.Close())
			}
			if _, err := quota.NewStore(ctx, s); err != nil {
				return nil, errors.Join(err, s.Close())
			}
			if _, err := grant.LoadStored(ctx, s, filepath.Join(dir, "consents.yaml")); err != nil {
				return nil, errors.Join(err, s.Close())
			}
			job := background.Job{Name: "a", Every: time.Hour, Run: func(context.Context) error { return nil }}
			runner, err := background.Start(ctx, s, nil, job)
			if err != nil {
				return nil, errors.Join(err, s.Close())
			}
			return func() error {
				runner.Close()
				return s.Close()
			}, nil
		},
		"audit log": func(_ context.Context, dir string) (func() error, error) {
			return leaktest.Closer(audit.Open(&audit.Options{Dir: dir}))
		},
		"database": func(ctx context.Context, dir string) (func() error, error) {
			return leaktest.Closer(hostdatabase.Open(ctx, hostdatabase.Options{
				Path: filepath.Join(dir, "a.db"), Migrations: []string{"CREATE TABLE a (b)"}, Quota: 1 << 20}))
		},
		"mount": func(_ context.Context, dir string) (func() error, error) {
			return leaktest.Closer(file.New(grant.Mount{Name: "m", Path: dir, Write: true, Quota: 1 << 20}))
		},
		"engine": func(context.Context, string) (func() error, error) {
			return leaktest.Closer(sandbox.New(nil))
		},
		"host": func(ctx context.Context, dir string) (func() error, error) {
			folder := filepath.Join(dir, "plugins")
			if err := os.Mkdir(folder, 0o700); err != nil {
				return nil, err
			}
			shipped := host.Shipped{File: "hello.wasm", Wasm: func() ([]byte, error) { return hello, nil }}
			h, err := host.New(&host.Options{Folders: []string{folder}, CacheDir: filepath.Join(dir, "cache"),
				DataDir: dir, Shipped: []host.Shipped{shipped},
				ShippedMounts: map[string]string{"workspace": filepath.Join(dir, "workspace")}})
			if err != nil {
				return nil, err
			}
			if err := h.Load(ctx); err != nil {
				return nil, errors.Join(err, h.Close())
			}
			if p := h.Plugins()[0]; p.State != host.Active {
				return nil, errors.Join(errors.New(p.Reason), h.Close())
			}
			return h.Close, nil
		},
		"upstream servers": func(_ context.Context, dir string) (func() error, error) {
			u, err := mcpclient.New(mcpclient.Options{Dir: dir, Catalog: new(catalog.Catalog), Environ: os.Environ()})
			if err != nil {
				return nil, err
			}
			if err := u.Apply([]mcpclient.Spec{{Name: "a", Command: "cat", Args: []string{"/dev/null"}}}); err != nil {
				return nil, errors.Join(err, u.Close())
			}
			testwait.Until(t, func() bool { return u.Status()[0].State == mcpclient.Down })
			if fault := u.Status()[0].Error; !strings.HasPrefix(fault, "the program has exited") { // as cat does
				return nil, errors.Join(errors.New(fault), u.Close())
			}
			return u.Close, nil
		},
		"agent": func(ctx context.Context, dir string) (func() error, error) {
			s, err := drivers.Open(context.Background(), dir, nil)
			if err != nil {
				return nil, err
			}
			spec := agent.Spec{BaseURL: "http://127.0.0.1:1", Sessions: []string{"sesn_1"},
				Key: secret.Source{Env: "HOME"}}
			if _, err := agent.New(ctx, &agent.Options{Spec: spec, Store: s}); err != nil {
				return nil, errors.Join(err, s.Close())
			}
			return s.Close, nil
		},
		"MCP server": func(ctx context.Context, dir string) (func() error, error) {
			s, err := drivers.Open(context.Background(), dir, nil)
			if err != nil {
				return nil, err
			}
			sessions, err := sessionstore.New(ctx, s)
			if err != nil {
				return nil, errors.Join(err, s.Close())
			}
			server, err := mcpserver.New(new(catalog.Catalog), nil, &mcpserver.Options{Sessions: sessions})
			if err != nil {
				return nil, errors.Join(err, s.Close())
			}
			return func() error { return errors.Join(server.Close(), s.Close()) }, nil
		},
		"backup": func(ctx context.Context, dir string) (func() error, error) {
			data := filepath.Join(dir, "data")
			s, err := drivers.Open(context.Background(), data, nil)
			if err != nil {
				return nil, err
			}
			if err := s.Close(); err != nil {
				return nil, err
			}
			if _, err := backup.Create(ctx, data, filepath.Join(dir, "backup")); err != nil {
				return nil, err
			}
			_, err = backup.Restore(ctx, filepath.Join(dir, "backup"), filepath.Join(dir, "again"))
			return func() error { return nil }, err
		},
	})
}
