package httpbroker

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/pdk/abi"
)

// authority issues certificates for tests.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	der  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true,
		BasicConstraintsValid: true,
		NotBefore:             time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
		KeyUsage: x509.KeyUsageCertSign,
	}
	return sign(t, template, nil)
}

// sign issues a certificate: by parent, or by itself if there is none.
func sign(t *testing.T, template *x509.Certificate, parent *authority) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	issuer, issuerKey := template, key
	if parent != nil {
		issuer, issuerKey = parent.cert, parent.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, &key.PublicKey, issuerKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{key, cert, der}
}

// leaf is a valid certificate of a vendor at 127.0.0.1, called vendor.test.
func leaf() *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "127.0.0.1"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"vendor.test"},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
}

// longName is a host name of about n bytes.
func longName(n int) string { return strings.Repeat("a.", n/2) + "example" }

// TestHostileVendorTLS: a vendor's server whose certificate or handshake is not good gets no request, and the guest
// gets a short error that says why.
func TestHostileVendorTLS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	with := func(change func(*x509.Certificate)) func() tls.Certificate {
		return func() tls.Certificate {
			template := leaf()
			change(template)
			signed := sign(t, template, ca)
			return tls.Certificate{Certificate: [][]byte{signed.der}, PrivateKey: signed.key}
		}
	}
	listing := func(count, length int) func(*x509.Certificate) {
		return func(c *x509.Certificate) {
			c.IPAddresses, c.DNSNames = nil, nil
			for i := range count {
				c.DNSNames = append(c.DNSNames, fmt.Sprintf("n%d.%s", i, longName(length)))
			}
		}
	}
	good := with(func(*x509.Certificate) {})
	for name, test := range map[string]struct {
		certificate func() tls.Certificate
		config      *tls.Config
		want        string
	}{
		"expired": {with(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), nil,
			"expired"},
		"not valid yet": {with(func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) }), nil,
			"not yet valid"},
		"another address": {with(func(c *x509.Certificate) {
			c.IPAddresses, c.DNSNames = []net.IP{net.IPv4(127, 0, 0, 2)}, nil
		}), nil, "certificate"},
		"another name": {with(func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"bank.example"} }),
			nil, "certificate"},
		"no name but the subject's": {with(func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, nil }), nil,
			"certificate"},
		"the address as a name": {with(func(c *x509.Certificate) {
			c.IPAddresses, c.DNSNames = nil,
				[]string{"127.0.0.1"}
		}),
			nil, "certificate"},
		"a wildcard for all": {with(func(c *x509.Certificate) {
			c.IPAddresses, c.DNSNames = nil, []string{"*", "*.0.0.1", "*.test.", "v*.test"}
		}),
			nil, "certificate"},
		"for clients only": {with(func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		}), nil, "usage"},
		"self-signed": {func() tls.Certificate {
			own := sign(t, leaf(), nil)
			return tls.Certificate{Certificate: [][]byte{own.der}, PrivateKey: own.key}
		}, nil, "unknown authority"},
		"another authority of the same name": {func() tls.Certificate {
			other := newAuthority(t)
			signed := sign(t, leaf(), other)
			return tls.Certificate{Certificate: [][]byte{signed.der, other.der}, PrivateKey: signed.key}
		}, nil, "unknown authority"},
		"signed by a server's certificate": {func() tls.Certificate {
			server := sign(t, leaf(), ca)
			signed := sign(t, leaf(), server)
			return tls.Certificate{Certificate: [][]byte{signed.der, server.der}, PrivateKey: signed.key}
		}, nil, "unknown authority"},
		"a chain of 60 certificates": {func() tls.Certificate {
			parent, chain := ca, [][]byte{}
			for i := range 60 {
				template := leaf()
				template.IsCA, template.BasicConstraintsValid = true, true
				template.KeyUsage, template.SerialNumber = x509.KeyUsageCertSign, big.NewInt(int64(i+3))
				template.MaxPathLenZero = true
				parent = sign(t, template, parent)
				chain = append([][]byte{parent.der}, chain...)
			}
			return tls.Certificate{Certificate: chain, PrivateKey: parent.key}
		}, nil, "limit reached"},
		"90 names of 2 KB": {with(listing(90, 2000)), nil, ""},
		"300 KB of names":  {with(listing(150, 2000)), nil, ""},
		"names that are lines and commands": {with(func(c *x509.Certificate) {
			c.IPAddresses, c.DNSNames = nil, []string{"a.example\nwarn: \x1b[2J", "b\x00.example"}
		}), nil, ""},
		"TLS 1.0": {good, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10}, "protocol version"},
		"TLS 1.1": {good, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, "protocol version"},
		"RC4": {good, &tls.Config{MaxVersion: tls.VersionTLS12,
			CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_RC4_128_SHA}}, "handshake failure"},
		"wants a certificate": {good, &tls.Config{ClientAuth: tls.RequireAnyClientCert}, "certificate"},
	} {
		for _, host := range []string{"127.0.0.1", "vendor.test"} {
			t.Run(name+", "+host, func(t *testing.T) {
				t.Parallel()
				var asked atomic.Bool
				server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
					asked.Store(true)
				}))
				server.Config.ErrorLog = log.New(io.Discard, "", 0)
				server.TLS = test.config.Clone()
				if server.TLS == nil {
					server.TLS = new(tls.Config)
				}
				server.TLS.Certificates = []tls.Certificate{test.certificate()}
				server.StartTLS()
				t.Cleanup(server.Close)
				rule := everything(strings.Replace(server.URL, "127.0.0.1", host, 1))
				rule.Private = true
				b := newBroker(t, &Options{RootCAs: roots, Resolver: names{"vendor.test": {"127.0.0.1"}},
					Rules: map[string]RuleOptions{"test": {Retries: -1}}}, rule)
				_, err := get(t, b, rule.URL+"/")
				wantCode(t, err, abi.CodeNetwork, test.want)
				if asked.Load() {
					t.Error("the server got the request")
				}
				if text := err.Error(); len(text) > 1000 || strings.ContainsAny(text, "\n\x1b\x00") {
					t.Errorf("the error has %d bytes: %.300q", len(text), text)
				}
			})
		}
	}
}

// TestHostileVendorHandshake: what is no handshake, or one that does not end, ends with the request's time, and the
// connection with it.
func TestHostileVendorHandshake(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer string
		open   bool // the server keeps the connection open
		code   string
	}{
		"nothing":       {"", true, abi.CodeTimeout},
		"half a record": {"\x16\x03\x03\x00\x7a\x02", true, abi.CodeTimeout},
		"a hello of 16 MB": {"\x16\x03\x03\x40\x00\x02\xff\xff\xff" + strings.Repeat("a", 16<<10-4), true,
			abi.CodeNetwork},
		"empty records without end": {strings.Repeat("\x16\x03\x03\x00\x00", 10_000), true, abi.CodeNetwork},
		"warnings without end":      {strings.Repeat("\x15\x03\x03\x00\x02\x01\x5a", 10_000), true, abi.CodeNetwork},
		"a record of 64 KB":         {"\x16\x03\x03\xff\xff" + strings.Repeat("a", 1<<16), true, abi.CodeNetwork},
		"the end of the connection": {"", false, abi.CodeNetwork},
		"an alert":                  {"\x15\x03\x03\x00\x02\x02\x28", false, abi.CodeNetwork},
		"HTTP":                      {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", false, abi.CodeNetwork},
		"a redirect in plain HTTP": {"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\n\r\n", false,
			abi.CodeNetwork},
		"SSL 2.0":                     {"\x80\x2e\x04\x00\x02\x00\x15\x00\x00\x00\x10", false, abi.CodeNetwork},
		"application data":            {"\x17\x03\x03\x00\x05hello", true, abi.CodeNetwork},
		"a request for another hello": {"\x16\x03\x03\x00\x04\x00\x00\x00\x00", true, abi.CodeNetwork},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				conn, err := l.Accept()
				if err != nil {
					return
				}
				defer conn.Close()
				_, _ = conn.Read(make([]byte, 4096))
				_, _ = io.WriteString(conn, test.answer)
				if test.open {
					_, _ = io.Copy(io.Discard, conn) // until hako closes it
				}
			}()
			options := &Options{Rules: map[string]RuleOptions{"test": {Retries: -1}}}
			options.Limits.Time = time.Minute
			if test.code == abi.CodeTimeout {
				options.Limits.Time = 100 * time.Millisecond
			}
			url := "https://" + l.Addr().String()
			_, err = get(t, newBroker(t, options, everything(url)), url+"/")
			wantCode(t, err, test.code)
			<-ended
		})
	}
}

// TestHostileVendorConnections: requests that end before their handshake leave at most Limits.Concurrent connections
// behind.
func TestHostileVendorConnections(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	var open, most atomic.Int64
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			for n := open.Add(1); n > most.Load(); {
				most.Store(n)
			}
			go func() {
				_, _ = io.Copy(io.Discard, conn) // until hako closes it
				_ = conn.Close()
				open.Add(-1)
			}()
		}
	}()
	const limit = 4
	url := "https://" + l.Addr().String()
	options := &Options{Limits: Limits{Concurrent: limit}, Rules: map[string]RuleOptions{"test": {Retries: -1}}}
	b := newBroker(t, options, everything(url))
	for range 10 * limit {
		if _, err := do(t, b, &abi.HTTPRequest{URL: url + "/", TimeoutMS: 5}, ""); err == nil {
			t.Fatal("an answer without a handshake")
		}
	}
	if n := most.Load(); n == 0 || n > limit {
		t.Errorf("%d connections at once, want at most %d", n, limit)
	}
}

// TestHostileVendorDowngrade: a redirect from https to http is followed only where http is granted too, and takes no
// credential along. Servers cannot have the connection negotiated again.
func TestHostileVendorDowngrade(t *testing.T) {
	t.Parallel()
	const secret = "s3cret-token"
	var plainSaw atomic.Pointer[http.Header]
	plain := serve(t, func(w http.ResponseWriter, r *http.Request) { plainSaw.Store(&r.Header) })
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, granted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d, http granted: %v", status, granted), func(t *testing.T) {
				plainSaw.Store(nil)
				secure := httptest.NewTLSServer(to(status, plain.URL+"/"))
				t.Cleanup(secure.Close)
				roots := secure.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
				rules := []grant.HTTPRule{everything(secure.URL)}
				if granted {
					rules = append(rules, grant.HTTPRule{Name: "plain", URL: plain.URL,
						Methods: []string{"GET", "POST"}})
				}
				b := newBroker(t, &Options{RootCAs: roots}, rules...)
				head := &abi.HTTPRequest{Method: "POST", URL: secure.URL + "/",
					Headers: map[string][]string{"Authorization": {"Bearer " + secret}, "X-Api-Key": {secret},
						"Cookie": {secret}}}
				_, err := do(t, b, head, "")
				switch saw := plainSaw.Load(); {
				case !granted:
					wantCode(t, err, abi.CodeNotGranted)
					if saw != nil {
						t.Error("the plain server was asked")
					}
				case err != nil:
					t.Error(err)
				case strings.Contains(fmt.Sprint(*saw), secret):
					t.Errorf("the plain server got %v", *saw)
				}
			})
		}
	}
	t.Run("renegotiation", func(t *testing.T) {
		config := newTransport(nil, nil, nil, new(Limits)).TLSClientConfig
		if config.Renegotiation != tls.RenegotiateNever || config.InsecureSkipVerify ||
			config.MinVersion != tls.VersionTLS12 {
			t.Errorf("%+v", config)
		}
	})
}
