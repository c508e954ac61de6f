// Package grant decides what a plugin may do: the permissions that it asks for, as far as the operator approved them.
//
// An approval is a Consent, bound to the digest of the plugin's file and to its permissions. Consents are recorded in a
// File that people can read and review. File.Decide compares a plugin with its consent: without one the plugin is
// pending and does not run. Resolve returns the Grants of an approved plugin. Propose returns a Proposal for a new
// consent, which an operator can change with Choices.
package grant

// Grants are the permissions of one plugin. Everything else does not exist for the plugin.
type Grants struct {
	HTTP   []HTTPRule
	Mounts []Mount
	// SQL is the plugin's database. Nil means none.
	SQL *SQL
	// Exec are the commands that the plugin may run. Nil means none.
	Exec *Exec
	// Tools are patterns for other tools that the plugin may call (manifest.ToolsPermission). Empty means none.
	Tools []string
}

// HTTPRule allows requests to the URLs under one base URL.
type HTTPRule struct {
	// Name is the permission's name in the manifest.
	Name string
	// URL is the base URL. Its host may start with "*." for any subdomain, or be "*" for any host. Without a port it
	// means the scheme's default port.
	URL string
	// Asked is the base URL that the plugin asks for if the operator moved it to another server. Requests under it are
	// sent to URL. Empty if there is nothing to move.
	Asked string
	// Methods are the allowed methods in upper case. Empty allows GET and HEAD.
	Methods []string
	// Paths are globs relative to URL's path ("data/**", doublestar syntax), one of which must match. Empty allows all
	// paths under URL.
	Paths []string
	// Private also allows addresses that are not public: private, loopback, link-local. If the host of URL is a literal
	// private address or "localhost", that address is allowed without it.
	Private bool
	// Credential names the credential that the host applies to requests. Empty means none.
	Credential string
	// Placeholder is the configuration key whose placeholder the credential replaces in headers. Empty means that the
	// host adds the credential's header.
	Placeholder string
}

// Mount allows the files below one directory of the host.
type Mount struct {
	// Name is the mount's name in the manifest, or that of one of Roots; the guest sees "/" + Name.
	Name string
	// Path is the directory on the host.
	Path  string
	Write bool
	// Deny are globs (doublestar syntax, relative to the mount, "**/.git/**") of the files to hide from the guest.
	Deny []string
	// Quota limits the total size of the files below the mount, in bytes. Zero means no quota.
	Quota int64
}

// ForCommands reports whether commands can use the mount. They see all of its files, because the kernel cannot hide a
// part of a directory, so they cannot use a mount with deny globs.
func (m Mount) ForCommands() bool { return len(m.Deny) == 0 }

// DefaultMountQuota is the default quota of a writable mount, in bytes.
const DefaultMountQuota = 10 << 30

// SQL allows a private database for each tenant.
type SQL struct {
	// Migrations are SQL statements, each applied once, in order.
	Migrations []string
	// Quota limits one tenant's database, in bytes.
	Quota int64
}

// Exec allows commands on the files of the plugin's mounts.
type Exec struct {
	// Programs are names of installed programs or absolute paths. "*" alone allows all installed programs.
	Programs []string
	// Env are the names of the host's environment variables that commands get, in addition to the ones that every
	// command gets.
	Env []string
	// Connect are the hosts and ports that commands may connect to, each in the form of ParseConnect. Empty means no
	// network.
	Connect []string
	// Ports are TCP ports of any host, which older versions granted. They grant nothing: a consent with Ports is
	// refused until the operator names hosts.
	Ports []uint16
	// Unconfined allows commands even if the kernel cannot confine them.
	Unconfined bool
}
