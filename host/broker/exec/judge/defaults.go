package judge

import "slices"

// Defaults are the rules that hold after an operator's own: what ruins a machine is denied, what changes it for others, and what runs
// code that no rule can see into, is asked about.
func Defaults() []Rule { return slices.Clone(defaults) }

var defaults = []Rule{
	{Name: "rm -rf", Action: Deny, Programs: []string{"rm"}, Flags: []string{"r|R|recursive", "f|force"},
		Reason: "deletes whole trees without asking: delete single files, or leave out -f"},
	{Name: "rm of the root", Action: Deny, Programs: []string{"rm", "rmdir", "unlink"}, Args: []string{"/", "--no-preserve-root"},
		Reason: "deletes the file system"},
	{Name: "git clean", Action: Deny, Programs: []string{"git clean"}, Flags: []string{"f|force"},
		Reason: "deletes all files that git does not track: list them with -n, and delete single ones"},
	{Name: "find -delete", Action: Deny, Programs: []string{"find", "gfind"}, Args: []string{"-delete"},
		Reason: "deletes whole trees: list the files first, and delete single ones"},
	{Name: "shutdown", Action: Deny, Programs: []string{"shutdown", "reboot", "halt", "poweroff", "init", "telinit", "kexec"},
		Reason: "stops the machine"},
	{Name: "shutdown by systemctl", Action: Deny, Programs: []string{"systemctl", "loginctl"},
		Args: []string{"poweroff", "reboot", "halt", "kexec", "suspend", "hibernate", "hybrid-sleep", "emergency", "rescue", "soft-reboot"}, Reason: "stops the machine"},
	{Name: "format", Action: Deny, Programs: []string{"format", "mkfs", "mkfs.*", "mke2fs", "mkswap", "fdisk", "sfdisk", "cfdisk", "gdisk", "sgdisk", "parted",
		"wipefs", "blkdiscard", "diskpart", "hdparm", "badblocks", "cryptsetup", "lvremove", "vgremove", "pvremove", "zpool", "mdadm"},
		Reason: "changes or erases disks"},
	{Name: "write to a device", Action: Deny, Programs: []string{"dd", "tee", "cp", "mv", "shred", "truncate", "install", "ln"},
		Args:   []string{"of=/dev/*", "/dev/sd*", "/dev/nvme*", "/dev/vd*", "/dev/hd*", "/dev/mmcblk*", "/dev/disk*", "/dev/mapper/*", "/dev/mem", "/dev/kmem", "/dev/port"},
		Reason: "writes to a device"},
	{Name: "shred", Action: Deny, Programs: []string{"shred", "srm", "wipe"}, Reason: "erases beyond recovery"},
	{Name: "kernel and boot", Action: Deny, Programs: []string{"insmod", "modprobe", "rmmod", "sysctl", "grub-install", "efibootmgr", "update-grub", "bcdedit", "reg", "vssadmin"},
		Reason: "changes the kernel or how the machine starts"},
	{Name: "other namespaces", Action: Deny, Programs: []string{"chroot", "unshare", "nsenter", "setpriv", "capsh", "mount", "umount", "pivot_root", "bwrap", "ip", "iptables", "ip6tables", "nft"},
		Reason: "changes what the sandbox stands on"},
	{Name: "debuggers", Action: Deny, Programs: []string{"strace", "ltrace", "gdb", "lldb", "ptrace", "perf", "bpftrace"}, Reason: "looks into other processes, or changes them"},

	{Name: "other users' rights", Action: Ask, Programs: []string{"sudo", "doas", "su", "runuser", "pkexec", "run0", "sg", "newgrp", "gosu", "setuidgid"},
		Reason: "runs with the rights of another user"},
	{Name: "packages", Action: Ask, Programs: []string{"apt", "apt-get", "aptitude", "dpkg", "yum", "dnf", "rpm", "zypper", "apk", "pacman", "snap", "flatpak", "brew", "port", "winget", "choco", "scoop", "nix-env", "emerge"},
		Reason: "installs or removes software"},
	{Name: "package installs", Action: Ask, Programs: []string{"pip*", "uv", "pipx", "npm", "pnpm", "yarn", "bun", "gem", "cargo", "go", "composer", "conda", "mamba", "poetry"},
		Args: []string{"install", "i", "add", "get", "remove", "uninstall", "update", "upgrade", "ci", "require", "exec", "dlx", "x", "create", "init"}, Reason: "installs software, which may run code of its own"},
	{Name: "run from the network", Action: Ask, Programs: []string{"npx", "bunx", "uvx", "pnpx", "deno"}, Reason: "fetches and runs code"},
	{Name: "recursive rm", Action: Ask, Programs: []string{"rm"}, Flags: []string{"r|R|recursive"}, Reason: "deletes a whole tree"},
	{Name: "users and schedules", Action: Ask, Programs: []string{"useradd", "usermod", "userdel", "groupadd", "passwd", "chpasswd", "visudo", "crontab", "at", "batch", "systemd-run", "systemctl", "service", "launchctl", "schtasks"},
		Reason: "changes users, services or what runs later"},
	{Name: "rights of files", Action: Ask, Programs: []string{"chmod", "chown", "chgrp", "setfacl", "chattr", "setcap"}, Reason: "changes who may do what with files"},
	{Name: "kill", Action: Ask, Programs: []string{"kill", "pkill", "killall", "xkill", "taskkill", "fuser"}, Reason: "ends other processes"},
	{Name: "containers and other machines", Action: Ask, Programs: []string{"docker", "podman", "nerdctl", "ctr", "crictl", "kubectl", "oc", "helm", "ssh", "scp", "sftp", "rsync", "telnet", "nc", "ncat", "netcat", "socat", "terraform", "ansible*", "aws", "gcloud", "az", "virsh", "lxc*", "machinectl"},
		Reason: "reaches beyond the sandbox: other machines, containers or accounts"},
	{Name: "code", Action: Ask, Programs: []string{"python*", "perl*", "ruby*", "node", "nodejs", "deno", "bun", "php*", "lua*", "tclsh*", "expect", "guile*", "R", "Rscript", "julia", "ghci", "runghc", "java", "jshell", "groovy", "scala", "osascript", "powershell*", "pwsh", "cmd", "wscript", "cscript", "mshta",
		"awk", "gawk", "mawk", "nawk", "m4", "bc", "dc", "jq", "sqlite3", "psql", "mysql", "make", "gmake", "cmake", "ninja", "rake", "just", "ant", "mvn", "gradle*", "bazel"},
		Reason: "runs code that rules cannot see into"},
	{Name: "editors and pagers", Action: Ask, Programs: []string{"vi", "vim*", "nvim", "ex", "ed", "emacs*", "nano", "pico", "less", "more", "man", "info", "screen", "tmux", "dialog", "whiptail", "ftp", "lftp", "mail", "mailx", "mutt"},
		Reason: "can start other programs from within"},

	{Name: "programs that start others", Action: Ask, Programs: []string{"openssl", "pax", "cpio", "nmap", "tcpdump", "pdflatex", "latex*", "gcc*", "g++*", "cc", "c++", "clang*", "ld", "as", "gpg*",
		"ssh-keygen", "rpmbuild", "dpkg-buildpackage", "hg", "svn", "aria2c", "parallel", "coreutils", "patch", "run-parts", "entr", "ssh-agent",
		"dbus-*", "xvfb-run", "unbuffer", "valgrind", "numactl", "rlwrap", "proxychains*", "prlimit", "faketime", "fakeroot", "firejail", "setarch", "linux32", "linux64",
		"eatmydata", "chpst", "softlimit", "daemonize", "start-stop-daemon"},
		Reason: "can load code or start other programs, by options and files that rules cannot see into"},
}
