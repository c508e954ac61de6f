// Package grant decides what a plugin may do: the permissions it asks for, as far as the operator said yes.
//
// The operator's yes is a consent: recorded in a file that people can read and review, bound to the digest of the plugin and
// to its permissions. Without one a plugin is pending: nothing of it runs.
package grant

// Grants is what one plugin may do. What is not in it does not exist for the plugin.
type Grants struct {
	HTTP   []HTTPRule
	Mounts []Mount
	// SQL is the plugin's database. Nil means none.
	SQL *SQL
	// Exec are the commands that the plugin may run. Nil means none.
	Exec *Exec
}

// HTTPRule allows requests to what is under one base URL.
type HTTPRule struct {
	// Name is the permission's name in the manifest.
	Name string
	// URL is the base URL. Its host may start with "*." for any subdomain, or be "*" for any host; without a port the
	// scheme's own is meant.
	URL string
	// Methods are the allowed methods, upper case. Empty allows GET and HEAD.
	Methods []string
	// Paths are globs relative to URL's path ("data/**", doublestar syntax), one of which must match. Empty allows all under URL.
	Paths []string
	// Private also allows addresses that are not public: private, loopback, link-local. A URL whose host is itself a literal
	// private address or "localhost" allows that address without it.
	Private bool
	// Credential names the credential that the host applies to the requests. Empty means none.
	Credential string
}

// Mount allows the files below one directory of the host.
type Mount struct {
	// Name is the mount's name in the manifest; the guest sees "/" + Name.
	Name string
	// Path is the directory on the host.
	Path  string
	Write bool
	// Deny are globs (doublestar syntax, relative to the mount, "**/.git/**") of what does not exist for the guest.
	Deny []string
	// Quota is the most bytes that files below the mount may hold together, in bytes. Zero means no quota.
	Quota int64
}

// DefaultMountQuota is the quota, in bytes, of a writable mount for which nobody has settled another.
const DefaultMountQuota = 10 << 30

// SQL allows a private database for each tenant.
type SQL struct {
	// Migrations are SQL statements, each applied once, in order.
	Migrations []string
	// Quota is the most bytes of one tenant's database.
	Quota int64
}

// Exec allows commands on the files of the plugin's mounts.
type Exec struct {
	// Programs are names, looked for where programs are installed, or absolute paths. "*" alone allows all that are installed.
	Programs []string
	// Env are the names of the host's environment variables that commands get, besides what every command gets.
	Env []string
	// Connect are the hosts and ports that commands may connect to, each in the form of ParseConnect. Empty means no network.
	Connect []string
	// Ports are in consents of older versions, which granted TCP ports of any host. They grant nothing: such a consent is refused until
	// the operator names hosts.
	Ports []uint16
	// Unconfined allows commands also where the kernel cannot hold them.
	Unconfined bool
}
