package server

import (
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/testcert"
	"github.com/hako-run/hako/dev/kit/testprogram"
	"github.com/hako-run/hako/host/app/config"
)

// TestCertificate: a renewed certificate is served; with a broken file the previous one stays in use.
func TestCertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := &certificate{certFile: filepath.Join(dir, "tls.crt"), keyFile: filepath.Join(dir, "tls.key")}
	if _, err := newCertificate(c.certFile, c.keyFile); err == nil {
		t.Error("no error without files")
	}
	serves := func(want int64) {
		t.Helper()
		got, err := c.get(nil)
		if err != nil {
			t.Fatal(err)
		}
		if got.Leaf.SerialNumber.Int64() != want {
			t.Errorf("got certificate %d, want %d", got.Leaf.SerialNumber, want)
		}
	}
	testcert.Write(t, dir, 1)
	serves(1)
	testcert.Write(t, dir, 2)
	serves(2)
	s := &Server{parts: []part{&tlsCertificate{certificate: c}}}
	if lines := s.status(); len(lines) > 0 {
		t.Errorf("usable files: %q", lines)
	}
	if err := os.WriteFile(c.certFile, []byte("half a fi"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := s.Problems("ja"); len(s.status()) != 1 || len(got) != 1 || !strings.Contains(got[0].Remedy, "以前の証明書") {
		t.Errorf("a broken file: %q, %+v", s.status(), got)
	}
	serves(2)
	testcert.Write(t, dir, 3)
	if err := c.err(); err != nil {
		t.Errorf("a file that is usable again: %v", err)
	}
	serves(3)
}

// TestHostileCertificates puts other files in the place of a certificate while it is served: the one before stays in
// use, and it is said.
func TestHostileCertificates(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(t *testing.T, cert, key string) error{
		"an expired one": func(t *testing.T, cert, key string) error {
			c, k := testcert.Pair(t, 2, -2*time.Hour, -time.Hour)
			return errors.Join(os.WriteFile(cert, c, 0o600), os.WriteFile(key, k, 0o600))
		},
		"one of tomorrow": func(t *testing.T, cert, key string) error {
			c, k := testcert.Pair(t, 2, 24*time.Hour, 48*time.Hour)
			return errors.Join(os.WriteFile(cert, c, 0o600), os.WriteFile(key, k, 0o600))
		},
		"another key": func(t *testing.T, _, key string) error {
			_, k := testcert.Pair(t, 2, -time.Hour, time.Hour)
			return os.WriteFile(key, k, 0o600)
		},
		"a certificate without its key": func(t *testing.T, cert, _ string) error {
			c, _ := testcert.Pair(t, 2, -time.Hour, time.Hour)
			return os.WriteFile(cert, c, 0o600)
		},
		"exchanged": func(_ *testing.T, cert, key string) error {
			return errors.Join(os.Rename(cert, cert+".old"), os.Rename(key, cert), os.Rename(cert+".old", key))
		},
		"nothing":       func(_ *testing.T, cert, _ string) error { return os.Remove(cert) },
		"no key":        func(_ *testing.T, _, key string) error { return os.Remove(key) },
		"an empty file": func(_ *testing.T, cert, _ string) error { return os.Truncate(cert, 0) },
		"half a file":   func(_ *testing.T, cert, _ string) error { return os.Truncate(cert, 100) },
		"junk": func(_ *testing.T, cert, _ string) error {
			return os.WriteFile(cert, []byte("\x00\xff"),
				0o600)
		},
		"PEM of junk": func(_ *testing.T, cert, _ string) error {
			return os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("junk")}), 0o600)
		},
		"a directory": func(_ *testing.T, cert, _ string) error {
			return errors.Join(os.Remove(cert),
				os.Mkdir(cert, 0o700))
		},
		"a device": func(_ *testing.T, cert, _ string) error {
			return errors.Join(os.Remove(cert), os.Symlink("/dev/zero", cert))
		},
		"a terabyte": func(_ *testing.T, cert, _ string) error { return os.Truncate(cert, 1<<40) },
		"a loop of links": func(_ *testing.T, cert, _ string) error {
			return errors.Join(os.Remove(cert), os.Symlink(cert, cert))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
			testcert.Write(t, dir, 1)
			c, err := newCertificate(cert, key)
			if err != nil {
				t.Fatal(err)
			}
			if err := put(t, cert, key); err != nil {
				testprogram.Missing(t, err.Error())
			}
			got, err := c.get(nil)
			if err != nil || got.Leaf.SerialNumber.Int64() != 1 {
				t.Errorf("another one is served, or none: %v", err)
			}
			if part := (&tlsCertificate{certificate: c}); c.err() == nil || len(part.status()) != 1 {
				t.Error("nothing is reported")
			}
			if text := c.err().Error(); strings.Contains(text, "PRIVATE KEY") {
				t.Errorf("%q", text)
			}
		})
	}
	t.Run("a good one with the old one's time and size", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		stamp := time.Unix(1_000_000_000, 0)
		link := filepath.Join(dir, "now")
		for i, version := range []string{"a", "b"} {
			testcert.Write(t, filepath.Join(dir, version), int64(i+1))
			for _, file := range []string{"tls.crt", "tls.key"} {
				if err := os.Chtimes(filepath.Join(dir, version, file), stamp, stamp); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := os.Symlink("a", link); err != nil {
			testprogram.Missing(t, err.Error())
		}
		c, err := newCertificate(filepath.Join(link, "tls.crt"), filepath.Join(link, "tls.key"))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Remove(link), os.Symlink("b", link)); err != nil {
			t.Fatal(err)
		}
		if got, err := c.get(nil); err != nil || got.Leaf.SerialNumber.Int64() != 2 {
			t.Errorf("the old one is served: %v", err)
		}
	})
	t.Run("one that expires while it is served", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		cert, key := testcert.Pair(t, 1, -2*time.Hour, -time.Hour)
		for name, data := range map[string][]byte{"tls.crt": cert, "tls.key": key} {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c, err := newCertificate(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.get(nil); err != nil {
			t.Fatal(err)
		}
		if err := c.err(); err == nil || !strings.Contains(err.Error(), "expired") {
			t.Errorf("nothing is reported: %v", err)
		}
	})
}

// TestReloadCertificate: another certificate is served to the next connection.
func TestReloadCertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pair := func(n int64) *config.Config {
		at := filepath.Join(dir, fmt.Sprint(n))
		testcert.Write(t, at, n)
		return &config.Config{HTTP: config.HTTP{TLSCert: filepath.Join(at, "tls.crt"),
			TLSKey: filepath.Join(at, "tls.key")}}
	}
	first, second := pair(1), pair(2)
	served, err := newCertificate(first.HTTP.TLSCert, first.HTTP.TLSKey)
	if err != nil {
		t.Fatal(err)
	}
	serves := func(want int64) {
		t.Helper()
		if now, err := served.get(nil); err != nil || now.Leaf.SerialNumber.Int64() != want {
			t.Errorf("certificate %v is served, %v", now.Leaf.SerialNumber, err)
		}
	}
	prepare := (&tlsCertificate{certificate: served}).prepare
	if _, err := prepare(t.Context(), &config.Config{HTTP: config.HTTP{TLSCert: second.HTTP.TLSCert, TLSKey: first.HTTP.TLSKey}}); err == nil {
		t.Error("a certificate without its key was accepted")
	}
	change, err := prepare(t.Context(), second)
	if err != nil {
		t.Fatal(err)
	}
	serves(1)
	change.apply()
	serves(2)
}
