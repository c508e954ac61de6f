package index

// ParseServers returns the servers of a page.
func ParseServers(page []byte) []Server {
	servers, _, err := parseServers(page)
	if err != nil {
		return nil
	}
	return servers
}
