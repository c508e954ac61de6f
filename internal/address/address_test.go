package address

import (
	"net/netip"
	"net/url"
	"testing"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	for want, addrs := range map[Reach][]string{
		Public: {"93.184.216.34", "1.1.1.1", "172.32.0.1", "100.128.0.1", "192.167.255.255",
			"2606:4700::1111", "2400:cb00::1",
			"::ffff:1.1.1.1", "64:ff9b::1.1.1.1"},
		Private: {"127.0.0.1", "127.255.255.254", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1",
			"100.64.0.1", "169.254.1.1",
			"198.18.0.1", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "fec0::1", "64:ff9b:1::1",
			"::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::7f00:1"},
		Named: {"169.254.169.254", "169.254.170.2", "169.254.170.23", "169.254.0.23", "169.254.42.42",
			"100.100.100.200", "168.63.129.16",
			"fd00:ec2::254", "fd00:ec2::23",
			"fd20:ce::254", "fd00:42::42", "fe80::a9fe:a9fe", "fe80::a9fe:a9fe%eth0", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe"},
		Never: {"0.0.0.0", "0.1.2.3", "192.0.0.192", "192.0.2.1", "198.51.100.1", "203.0.113.1", "192.88.99.1",
			"224.0.0.1", "239.1.1.1", "240.0.0.1",
			"255.255.255.255", "::", "::127.0.0.1", "ff02::1", "2001:db8::1", "3fff::1", "2002:7f00:1::",
			"2002:a00:1::1", "2001::1", "2001:20::1",
			"100::1", "4000::1", "5f00::1", "::ffff:0.0.0.0", "::ffff:0:127.0.0.1"},
	} {
		for _, a := range addrs {
			if kind, got := Classify(netip.MustParseAddr(a)); got != want {
				t.Errorf("%s: %d (%s), want %d", a, got, kind, want)
			}
		}
	}
}

// TestSpellings: the hosts of URLs and of Host headers in every spelling.
func TestSpellings(t *testing.T) {
	t.Parallel()
	const loopback, local, private = 4, 2, 1 // what holds for the host
	for host, want := range map[string]int{
		"localhost": loopback | local | private, "LocalHost": loopback | local | private,
		"127.0.0.1":       loopback | local | private,
		"127.255.255.254": loopback | local | private, "[::1]": loopback | local | private,
		"[0:0:0:0:0:0:0:1]": loopback | local | private, "[::1%25lo]": loopback | local | private,
		"[::ffff:127.0.0.1]": loopback | local | private, "[::FFFF:7f00:1]": loopback | local | private,
		// A resolver may look it up.
		"localhost.": local | private, "app.localhost": local | private, "a.b.LOCALHOST.": local | private,
		"10.0.0.1": private, "172.16.0.1": private, "192.168.0.1": private, "100.64.0.1": private,
		"169.254.169.254": private, "0.0.0.0": private, "[::]": private, "[fd00::1]": private, "[fe80::1]": private,
		"[::ffff:10.0.0.1]": private, "[::ffff:0.0.0.0]": private, "[64:ff9b::7f00:1]": private,
		// Some resolvers and browsers read these as 127.0.0.1; Go looks them up as names.
		"127.1": 0, "2130706433": 0, "0x7f000001": 0, "0177.0.0.1": 0,
		"localhost.example.com": 0, "127.0.0.1.example.com": 0, "notlocalhost": 0, "localhost..": 0,
		".localhost.com": 0,
		"ｌｏｃａｌｈｏｓｔ":      0, "8.8.8.8": 0, "[2001:4860:4860::8888]": 0, "[::ffff:8.8.8.8]": 0, "example.com": 0, "*": 0,
		"[::127.0.0.1]": 0,
	} {
		for _, port := range []string{"", ":8420"} {
			u, err := url.Parse("http://" + host + port)
			if err != nil {
				t.Fatal(err)
			}
			got := 0
			if IsLoopback(u.Hostname()) {
				got |= loopback
			}
			if IsLocalName(Hostname(u.Host)) {
				got |= local
			}
			if IsPrivate(u.Hostname()) {
				got |= private
			}
			if got != want {
				t.Errorf("%s%s: %03b, want %03b", host, port, got, want)
			}
			if IsConfidential(u) != (want&loopback != 0) {
				t.Errorf("%s is confidential: %v", u, IsConfidential(u))
			}
		}
	}
	if !IsLocalName(Hostname("127.0.0.1.:80")) { // browsers send it for that address
		t.Error("an address with a trailing dot does not mean this machine")
	}
	for _, host := range []string{"", ":80", "[", "]", "::1::", "[::1]x"} {
		if IsLoopback(host) || IsLocalName(Hostname(host)) || IsPrivate(host) {
			t.Errorf("%q means this machine", host)
		}
	}
	for text, want := range map[string]bool{"https://example.com": true, "https://": false, "https://:443": false,
		"http:///path":    false,
		"ftp://localhost": false, "//localhost": false, "localhost": false, "wss://example.com": false} {
		if u, err := url.Parse(text); err != nil || IsConfidential(u) != want {
			t.Errorf("%s: %v, %v", text, err, !want)
		}
	}
}
