package judge

import (
	"strings"
)

// entry describes a program.
type entry struct {
	// options are the harmless options of the program, separated by spaces. Names of one option are separated by "|".
	// "=" after them means a value, "?" an optional value. Before them, "!" marks an option that can start other
	// programs or load code, "$" an option whose value is a shell line, "%" an option whose value is split into several
	// arguments.
	options string
	// wrapper is set for programs that start the program in their operands. Their options end at the first operand.
	wrapper *wrapper
	// subcommands reports that the first operand names a subcommand with its own entry.
	subcommands bool
	// literal reports that there are no options; bundled that the first argument may be option letters without a dash;
	// plus that options may start with "+"; numbers that "-" with digits is an option; exact that prefixes of long
	// names are not accepted, because the list of options is incomplete, and that "no-" before a name is.
	literal, bundled, plus, numbers, exact bool
	// asks is the reason to ask about the program whatever its options; empty if there is none.
	asks string
	// check examines values and operands.
	check func(*parsedArgs)
}

// aliases are other names of programs in the table.
var aliases = map[string]string{
	"[": "test", "egrep": "grep", "fgrep": "grep", "ggrep": "grep", "gsed": "sed", "gtar": "tar", "unxz": "xz",
	"xzcat": "xz", "gunzip": "gzip", "zcat": "gzip",
	"bunzip2": "bzip2", "bzcat": "bzip2", "unzstd": "zstd", "zstdcat": "zstd", "hd": "hexdump", "zipinfo": "unzip",
	"dir": "ls", "vdir": "ls",
	"sha1sum": "md5sum", "sha224sum": "md5sum", "sha256sum": "md5sum", "sha384sum": "md5sum", "sha512sum": "md5sum",
	"b2sum": "md5sum", "false": "true",
	"bash": "sh", "dash": "sh", "ash": "sh", "zsh": "sh", "ksh": "sh", "mksh": "sh", "yash": "sh", "rbash": "sh",
	"fish": "sh", "csh": "sh", "tcsh": "sh",
	"runuser": "su", "toybox": "busybox", "gfind": "find", "fdfind": "fd", "git whatchanged": "git log",
	"git annotate":  "git blame",
	"git diff-tree": "git diff", "git diff-index": "git diff", "git diff-files": "git diff", "git init-db": "git init",
}

// table contains the programs whose options this package parses. A program belongs here if every option that can start
// other programs is marked, for all of its versions.
var table = map[string]entry{
	// Text and number output.
	"true": {literal: true}, "echo": {literal: true}, "printf": {literal: true},
	"test": {literal: true}, "expr": {literal: true},
	"yes": {literal: true}, "arch": {literal: true}, "hostid": {literal: true}, "logname": {literal: true},
	"tty": {literal: true}, "whoami": {literal: true},
	"sleep": {literal: true}, "factor": {literal: true}, "tsort": {literal: true}, "groups": {literal: true},
	"users": {literal: true},
	"seq":   {options: "f|format= s|separator= w|equal-width help version", numbers: true},
	"numfmt": {options: `debug d|delimiter= field= format= from= from-unit= grouping header? invalid= padding=
		round= suffix= to= to-unit= z|zero-terminated help version`, numbers: true},
	"basename": {options: "a|multiple s|suffix= z|zero help version"},
	"dirname":  {options: "z|zero help version"},
	"date": {options: `d|date= debug f|file= I|iso-8601? resolution R|rfc-email|rfc-2822 rfc-3339= r|reference=
		s|set= u|utc|universal|uct help version`},
	"id": {options: "a Z|context g|group G|groups n|name r|real u|user z|zero help version"},
	"uname": {options: `a|all s|kernel-name n|nodename r|kernel-release v|kernel-version m|machine p|processor
		i|hardware-platform o|operating-system help version`},
	"nproc":    {options: "all ignore= help version"},
	"printenv": {options: "0|null help version"},
	"pwd":      {options: "L|logical P|physical help version"},

	// Texts.
	"cat": {options: `A|show-all b|number-nonblank e E|show-ends n|number s|squeeze-blank t T|show-tabs u
		v|show-nonprinting help version`},
	"head": {options: "c|bytes= n|lines= q|quiet|silent v|verbose z|zero-terminated help version", numbers: true},
	"tail": {options: `c|bytes= f follow? F n|lines= max-unchanged-stats= pid= q|quiet|silent retry
		s|sleep-interval= v|verbose z|zero-terminated help version`, numbers: true},
	"wc": {options: "c|bytes m|chars l|lines files0-from= L|max-line-length w|words total= debug help version"},
	"uniq": {options: `c|count d|repeated D all-repeated? f|skip-fields= group? i|ignore-case s|skip-chars= u|unique
		z|zero-terminated w|check-chars= help version`, numbers: true},
	"cut": {options: `b|bytes= c|characters= d|delimiter= f|fields= n complement s|only-delimited output-delimiter=
		z|zero-terminated help version`},
	"tr":    {options: "c|C|complement d|delete s|squeeze-repeats t|truncate-set1 help version"},
	"paste": {options: "d|delimiters= s|serial z|zero-terminated help version"},
	"join": {options: `a= e= i|ignore-case j= o= t= v= 1= 2= check-order nocheck-order header z|zero-terminated help
		version`},
	"comm": {options: "1 2 3 check-order nocheck-order output-delimiter= total z|zero-terminated help version"},
	"nl": {options: `b|body-numbering= d|section-delimiter= f|footer-numbering= h|header-numbering=
		i|line-increment= l|join-blank-lines= n|number-format= p|no-renumber s|number-separator=
		v|starting-line-number= w|number-width= help version`},
	"tac":  {options: "b|before r|regex s|separator= help version"},
	"rev":  {options: "0|zero h|help V|version"},
	"fold": {options: "b|bytes c|characters s|spaces w|width= help version", numbers: true},
	"fmt": {options: `c|crown-margin p|prefix= s|split-only t|tagged-paragraph u|uniform-spacing w|width= g|goal=
		help version`, numbers: true},
	"expand": {options: "i|initial t|tabs= help version", numbers: true},
	"column": {options: `t|table n|table-name= O|table-order= N|table-columns= l|table-columns-limit=
		E|table-noextreme= d|table-noheadings e|table-header-repeat H|table-hide= R|table-right= T|table-truncate=
		W|table-wrap= L|keep-empty-lines|table-empty-lines J|json r|tree= i|tree-id= p|tree-parent=
		c|output-width|columns= o|output-separator= s|separator= x|fillrows h|help V|version`},
	"od": {options: `A|address-radix= endian= j|skip-bytes= N|read-bytes= S= strings? t|format= v|output-duplicates
		w|width? traditional help version a b c d f i l o s x`},
	"hexdump": {options: `b|one-byte-octal c|one-byte-char C|canonical d|two-bytes-decimal o|two-bytes-octal
		x|two-bytes-hex L|color? e|format= f|format-file= n|length= s|skip= v|no-squeezing h|help V|version`},
	"xxd":    {options: "a b c= C d e E g= h i l= n= o= p r R= s= u v"},
	"base64": {options: "d|D|decode i|ignore-garbage w|wrap= help version"},
	"base32": {options: "d|decode i|ignore-garbage w|wrap= help version"},
	"md5sum": {options: `b|binary c|check l|length= tag t|text z|zero ignore-missing quiet status strict w|warn help
		version`},
	"cksum": {options: `a|algorithm= base64 c|check l|length= raw tag untagged z|zero ignore-missing quiet status
		strict w|warn debug help version`},
	"shuf": {options: `e|echo i|input-range= n|head-count= o|output= random-source= r|repeat z|zero-terminated help
		version`},
	"sort": {options: `b|ignore-leading-blanks d|dictionary-order f|ignore-case g|general-numeric-sort
		i|ignore-nonprinting M|month-sort h|human-numeric-sort n|numeric-sort R|random-sort random-source= r|reverse
		sort= V|version-sort batch-size= c check? C !compress-program= debug files0-from= k|key= m|merge o|output=
		s|stable S|buffer-size= t|field-separator= T|temporary-directory= parallel= u|unique z|zero-terminated help
		version`},
	"split": {options: `a|suffix-length= additional-suffix= b|bytes= C|line-bytes= d numeric-suffixes? x
		hex-suffixes? e|elide-empty-files !filter= l|lines= n|number= t|separator= u|unbuffered verbose help version`, numbers: true},
	"csplit": {options: `b|suffix-format= f|prefix= k|keep-files suppress-matched n|digits= s|q|quiet|silent
		z|elide-empty-files help version`},
	"grep": {options: `E|extended-regexp F|fixed-strings|fixed-regexp G|basic-regexp P|perl-regexp e|regexp= f|file=
		i|y|ignore-case no-ignore-case w|word-regexp x|line-regexp z|null-data s|no-messages v|invert-match
		V|version m|max-count= b|byte-offset n|line-number line-buffered H|with-filename h|no-filename label=
		o|only-matching q|quiet|silent binary-files= a|text I d|directories= D|devices= r|recursive
		R|dereference-recursive include= exclude= exclude-from= exclude-dir= L|files-without-match
		l|files-with-matches c|count T|initial-tab Z|null B|before-context= A|after-context= C|context=
		group-separator= no-group-separator color|colour? U|binary u|unix-byte-offsets X= help`, numbers: true},
	"rg": {options: `e|regexp= f|file= A|after-context= B|before-context= C|context= c|count count-matches color=
		colors= column no-column crlf E|encoding= F|fixed-strings L|follow files l|files-with-matches
		files-without-match g|glob= iglob= heading no-heading H|with-filename I|no-filename hidden i|ignore-case
		no-ignore json n|line-number N|no-line-number M|max-columns= m|max-count= d|max-depth= U|multiline
		multiline-dotall no-config no-messages 0|null only-matching o passthru P|pcre2 p|pretty !pre= !pre-glob=
		!hostname-bin= !z|search-zip q|quiet r|replace= S|smart-case s|case-sensitive sort= sortr= stats a|text
		t|type= T|type-not= type-list u|unrestricted trim vimgrep v|invert-match w|word-regexp x|line-regexp
		j|threads= . h|help V|version`, exact: true},
	"diff": {options: `normal q|brief s|report-identical-files c C= context? u U= unified? e|ed f|forward-ed n|rcs
		y|side-by-side W|width= left-column suppress-common-lines p|show-c-function F|show-function-line= label=
		t|expand-tabs T|initial-tab tabsize= suppress-blank-empty !l|paginate r|recursive no-dereference N|new-file
		P|unidirectional-new-file ignore-file-name-case no-ignore-file-name-case x|exclude= X|exclude-from=
		S|starting-file= from-file= to-file= i|ignore-case E|ignore-tab-expansion Z|ignore-trailing-space
		b|ignore-space-change w|ignore-all-space B|ignore-blank-lines I|ignore-matching-lines= a|text
		strip-trailing-cr D|ifdef= d|minimal horizon-lines= H|speed-large-files color? palette= help v|version L=
		old-group-format= new-group-format= unchanged-group-format= changed-group-format= line-format=
		old-line-format= new-line-format= unchanged-line-format= binary sdiff-merge-assist presume-output-tty`, numbers: true},
	"cmp": {options: "b|print-bytes c|print-chars i|ignore-initial= l|verbose n|bytes= s|quiet|silent help v|version"},
	"sed": {options: `n|quiet|silent debug e|expression= !f|file= follow-symlinks b|binary i|in-place?
		l|line-length= posix|p E|r|regexp-extended s|separate sandbox u|unbuffered|line-buffered
		z|null-data|zero-terminated help version`, check: checkSed},

	// Files. The sandbox restricts which of them may be read or changed.
	"ls": {options: `a|all A|almost-all author b|escape block-size= B|ignore-backups c C color? d|directory D|dired
		f F classify? file-type format= full-time g group-directories-first G|no-group h|human-readable si
		H|dereference-command-line dereference-command-line-symlink-to-dir hide= hyperlink? indicator-style= i|inode
		I|ignore= k|kibibytes l L|dereference m n|numeric-uid-gid N|literal o p q|hide-control-chars
		show-control-chars Q|quote-name quoting-style= r|reverse R|recursive s|size S sort= time= time-style= t
		T|tabsize= u U v w|width= x X Z|context zero 1 help version`},
	"stat": {options: "L|dereference f|file-system cached= c|format= printf= t|terse Z|context help version"},
	"df": {options: `a|all B|block-size= direct h|human-readable H|si i|inodes k l|local no-sync output?
		P|portability sync total t|type= T|print-type x|exclude-type= v help version`},
	"du": {options: `0|null a|all apparent-size A B|block-size= b|bytes c|total D|dereference-args d|max-depth=
		files0-from= H h|human-readable inodes k L|dereference l|count-links m P|no-dereference S|separate-dirs si
		s|summarize t|threshold= time? time-style= X|exclude-from= exclude= x|one-file-system help version`},
	"realpath": {options: `E e|canonicalize-existing|canonicalize m|canonicalize-missing L|logical P|physical
		q|quiet relative-to= relative-base= s|strip|no-symlinks z|zero help version`},
	"readlink": {options: `f|canonicalize e|canonicalize-existing m|canonicalize-missing n|no-newline q|quiet
		s|silent v|verbose z|zero help version`},
	"file": {options: `help v|version m|magic-file= !z|uncompress !Z|uncompress-noreport b|brief c|checking-printout
		e|exclude= exclude-quiet= f|files-from= F|separator= i|mime apple extension mime-type mime-encoding
		k|keep-going l|list L|dereference h|no-dereference n|no-buffer N|no-pad 0|print0 p|preserve-date
		P|parameter= r|raw s|special-files S|no-sandbox C|compile d|debug`},
	"which": {options: "a s"},
	"tree": {options: `a d l f x L= R P= I= gitignore prune noreport p s h u g D i q N Q F C n v t c U r S J X H= T=
		o= 1`},
	"touch": {options: "a c|no-create d|date= f h|no-dereference m r|reference= t= time= help version"},
	"mkdir": {options: "m|mode= p|parents v|verbose Z context? help version"},
	"rmdir": {options: "ignore-fail-on-non-empty p|parents|path v|verbose help version"},
	"rm": {options: `f|force i I interactive? one-file-system no-preserve-root preserve-root? r|R|recursive d|dir
		v|verbose presume-input-tty help version`},
	"cp": {options: `a|archive attributes-only backup? b copy-contents d debug f|force i|interactive H
		keep-directory-symlink l|link L|dereference n|no-clobber P|no-dereference p preserve? no-preserve=
		parents|path R|r|recursive reflink? remove-destination sparse= strip-trailing-slashes s|symbolic-link
		S|suffix= t|target-directory= T|no-target-directory u update? v|verbose x|one-file-system Z context? help
		version`},
	"mv": {options: `backup? b debug exchange f|force i|interactive n|no-clobber no-copy strip-trailing-slashes
		S|suffix= t|target-directory= T|no-target-directory u update? v|verbose Z|context help version`},
	"ln": {options: `backup? b d|F|directory f|force i|interactive L|logical n|no-dereference P|physical r|relative
		s|symbolic S|suffix= t|target-directory= T|no-target-directory v|verbose help version`},
	"install": {options: `backup? b c C|compare d|directory D debug g|group= m|mode= o|owner= p|preserve-timestamps
		!s|strip !strip-program= S|suffix= t|target-directory= T|no-target-directory v|verbose preserve-context Z
		context? help version`},
	"link": {literal: true}, "unlink": {literal: true},
	"truncate": {options: "c|no-create o|io-blocks r|reference= s|size= help version", numbers: true},
	"mktemp":   {options: "d|directory u|dry-run q|quiet suffix= p|tmpdir? t V|version help"},
	"mkfifo":   {options: "m|mode= Z context? help version"},
	"mknod":    {options: "m|mode= Z context? help version"},
	"sync":     {options: "d|data f|file-system help version"},
	"tee":      {options: "a|append i|ignore-interrupts p output-error? help version"},
	"dd":       {options: "help version"},
	"find":     {literal: true}, // nestedInFind parses its expression
	"fd": {options: `H|hidden I|no-ignore no-ignore-vcs u|unrestricted s|case-sensitive i|ignore-case g|glob regex
		F|fixed-strings and= a|absolute-path relative-path L|follow p|full-path 0|print0 d|max-depth= min-depth=
		exact-depth= E|exclude= prune t|type= e|extension= S|size= changed-within= changed-before= o|owner= !x|exec
		!X|exec-batch c|color= j|threads= max-results= 1 q|quiet show-errors base-directory= strip-cwd-prefix h|help
		V|version`, exact: true},

	// Archives. tar can start programs in many ways, also through file names that look like options.
	"tar": {options: `A|catenate|concatenate c|create delete d|diff|compare r|append test-label t|list u|update
		x|extract|get check-device g|listed-incremental= G|incremental hole-detection= ignore-failed-read level=
		no-check-device no-seek n|seek occurrence? sparse-version= S|sparse add-file= C|directory= exclude=
		exclude-backups exclude-caches exclude-caches-all exclude-caches-under exclude-ignore=
		exclude-ignore-recursive= exclude-tag= exclude-tag-all= exclude-tag-under= exclude-vcs exclude-vcs-ignores
		no-null no-recursion no-unquote no-verbatim-files-from null recursion !T|files-from= unquote
		verbatim-files-from X|exclude-from= anchored ignore-case no-anchored no-ignore-case no-wildcards
		no-wildcards-match-slash wildcards wildcards-match-slash keep-directory-symlink keep-newer-files
		k|keep-old-files no-overwrite-dir one-top-level? overwrite overwrite-dir recursive-unlink remove-files
		skip-old-files U|unlink-first W|verify ignore-command-error no-ignore-command-error O|to-stdout !to-command=
		atime-preserve? clamp-mtime delay-directory-restore group= group-map= mode= mtime= m|touch
		no-delay-directory-restore no-same-owner no-same-permissions numeric-owner owner= owner-map=
		p|preserve-permissions|same-permissions same-owner sort= s|preserve-order|same-order acls no-acls no-selinux
		no-xattrs selinux xattrs xattrs-exclude= xattrs-include= force-local f|file=
		!F|info-script|new-volume-script= L|tape-length= !M|multi-volume !rmt-command= !rsh-command= volno-file=
		b|blocking-factor= B|read-full-records i|ignore-zeros record-size= H|format= old-archive|portability
		pax-option= posix V|label= a|auto-compress !I|use-compress-program= j|bzip2 J|xz lzip lzma lzop
		no-auto-compress zstd z|gzip|gunzip|ungzip Z|compress|uncompress backup? hard-dereference h|dereference
		K|starting-file= newer-mtime= N|newer|after-date= one-file-system P|absolute-names suffix= strip-components=
		transform|xform= checkpoint? !checkpoint-action= full-time index-file= l|check-links no-quote-chars=
		quote-chars= quoting-style= R|block-number show-defaults show-omitted-dirs show-snapshot-field-ranges
		show-transformed-names|show-stored-names totals? utc v|verbose warning= w|interactive|confirmation o help
		restrict usage version preserve !set-mtime-command= set-mtime-format=`, bundled: true, check: checkTar},
	"gzip": {options: `a|ascii c|stdout|to-stdout d|decompress|uncompress f|force h|help k|keep l|list L|license
		n|no-name N|name q|quiet|silent r|recursive rsyncable S|suffix= synchronous t|test v|verbose V|version fast
		best`, numbers: true},
	"bzip2": {options: `c|stdout d|decompress z|compress f|force h|help k|keep L|license q|quiet s|small t|test
		v|verbose V|version fast best`, numbers: true},
	"xz": {options: `z|compress d|decompress|uncompress t|test l|list k|keep f|force c|stdout|to-stdout
		single-stream no-sparse S|suffix= files? files0? F|format= C|check= ignore-check e|extreme T|threads=
		block-size= M|memlimit= q|quiet v|verbose robot h|help H|long-help V|version fast best`, numbers: true},
	"zstd": {options: `d|decompress|uncompress z|compress f|force k|keep c|stdout o= t|test l|list q|quiet v|verbose
		r T= rm h|help H V|version D= ultra fast? long? no-progress`, numbers: true},
	"unzip": {options: "l v t z Z p c n o f u x d= j q a b C L M X D K U W P= 1 2 h", exact: true},
	"zip": {options: `r|recurse-paths q|quiet v|verbose j|junk-paths D|no-dir-entries u|update f|freshen m|move
		d|delete X|no-extra y|symlinks e|encrypt P|password= @ x|exclude i|include o|latest-time l k h !T|test
		!unzip-command=`, numbers: true, exact: true},

	// Network. The gateway restricts which hosts can be reached.
	"curl": {options: `s|silent S|show-error f|fail fail-with-body L|location I|head i|include v|verbose o|output=
		O|remote-name J|remote-header-name R|remote-time output-dir= create-dirs X|request= H|header=
		d|data|data-ascii= data-raw= data-binary= data-urlencode= json= F|form= form-string= G|get A|user-agent=
		e|referer= u|user= b|cookie= c|cookie-jar= k|insecure m|max-time= connect-timeout= retry= retry-delay=
		retry-max-time= retry-all-errors compressed 4|ipv4 6|ipv6 x|proxy= noproxy= T|upload-file= r|range=
		w|write-out= url= Z|parallel parallel-max= g|globoff N|no-buffer no-progress-meter progress-bar path-as-is
		http1.1 http2 tlsv1.2 tlsv1.3 proto= max-filesize= max-redirs= resolve= cacert= capath= C|continue-at=
		z|time-cond= oauth2-bearer= !K|config= !engine= q|disable h|help? V|version`, exact: true},
	"wget": {options: `q|quiet v|verbose O|output-document= P|directory-prefix= c|continue N|timestamping
		S|server-response T|timeout= t|tries= r|recursive l|level= k|convert-links p|page-requisites n= no-parent
		no-clobber A|accept= R|reject= U|user-agent= header= post-data= post-file= method= body-data= spider
		no-check-certificate content-disposition max-redirect= i|input-file= !e|execute= !config= !use-askpass=
		4|inet4-only 6|inet6-only h|help V|version`, exact: true},

	// Programs that start others.
	"sh": {options: `a b e f h i k l m n p r s t u v x B C D E H P T c o= O= norc noprofile posix login restricted
		verbose rcfile= init-file=`, plus: true, wrapper: &wrapper{script: true}},
	"su": {options: `f|fast l|login m|p|preserve-environment P|pty T|no-pty g|group= G|supp-group= s|shell= u|user=
		w|whitelist-environment= $c|command= $session-command= h|help V|version`,
		wrapper: &wrapper{skip: 1, script: true}},
	"env": {options: `i|ignore-environment 0|null u|unset= C|chdir= %S|split-string= a|argv0= block-signal?
		default-signal? ignore-signal? list-signal-handling v|debug help version`,
		wrapper: &wrapper{assignments: true, optional: true}},
	"sudo": {options: `A|askpass b|background B|bell C|close-from= D|chdir= E preserve-env? e|edit g|group=
		H|set-home help host= i|login K|remove-timestamp k|reset-timestamp l|list N|no-update n|non-interactive
		P|preserve-groups p|prompt= R|chroot= r|role= S|stdin s|shell t|type= T|command-timeout= U|other-user=
		u|user= V|version v|validate`, wrapper: &wrapper{assignments: true, optional: true}},
	"doas":   {options: "L n s u= C= a=", wrapper: &wrapper{}},
	"nohup":  {options: "help version", wrapper: &wrapper{}},
	"setsid": {options: "c|ctty f|fork w|wait h|help V|version", wrapper: &wrapper{}},
	"nice":   {options: "n|adjustment= help version", numbers: true, wrapper: &wrapper{optional: true}},
	"ionice": {options: `c|class= n|classdata= p|pid= P|pgid= t|ignore u|uid= h|help V|version`,
		wrapper: &wrapper{optional: true}},
	"chrt":    {options: "f|fifo r|rr R|reset-on-fork v|verbose h|help V|version", wrapper: &wrapper{skip: 1}},
	"taskset": {options: "a|all-tasks c|cpu-list h|help V|version", wrapper: &wrapper{skip: 1}},
	"timeout": {options: `preserve-status f|foreground k|kill-after= p s|signal= v|verbose help version`,
		wrapper: &wrapper{skip: 1}},
	"time": {options: `a|append f|format= o|output= p|portability q|quiet v|verbose V|version h|help`,
		wrapper: &wrapper{}},
	"stdbuf": {options: "i|input= o|output= e|error= help version", wrapper: &wrapper{}},
	"flock": {options: `s|shared x|e|exclusive u|unlock n|nb|nonblock|nonblocking w|wait|timeout=
		E|conflict-exit-code= o|close $c|command= F|no-fork verbose h|help V|version`,
		wrapper: &wrapper{skip: 1, optional: true}},
	"script": {options: `a|append $c|command= e|return f|flush force q|quiet E|echo= I|log-in= O|log-out= B|log-io=
		T|log-timing= m|logging-format= o|output-limit= h|help V|version`,
		wrapper: &wrapper{skip: 1}},
	"watch": {options: `b|beep c|color C|no-color d|differences? e|errexit g|chgexit n|interval= p|precise
		q|equexit= t|no-title w|no-wrap x|exec h|help v|version`, wrapper: &wrapper{joined: true}},
	"busybox": {options: "help list list-full", wrapper: &wrapper{optional: true}},
	"chroot":  {options: "groups= userspec= skip-chdir help version", wrapper: &wrapper{skip: 1}},
	"strace":  {options: "f q v t T r y c C d D i w e= o= p= s= u= E= a= I= O= P= S= b= X=", wrapper: &wrapper{}},
	"ltrace":  {options: "f q t T r c C i S e= o= p= s= u= a= n= A= D= F= l= x=", wrapper: &wrapper{}},
	"xargs": {options: `0|null a|arg-file= d|delimiter= E= e|eof? I= i|replace? L= l|max-lines? n|max-args=
		o|open-tty P|max-procs= p|interactive process-slot-var= r|no-run-if-empty s|max-chars= show-limits t|verbose
		x|exit help version`, wrapper: &wrapper{open: true, optional: true}},
	"parallel": {options: `j|jobs= k|keep-order a|arg-file= S= I= N= n= d= 0|null q t X m will-cite`,
		wrapper: &wrapper{open: true, joined: true, optional: true}},
	"ld.so": {options: `!library-path= inhibit-rpath= !audit= !preload= argv0= list verify inhibit-cache`,
		wrapper: &wrapper{}},
	"command": {options: "p v V", wrapper: &wrapper{optional: true}},
	"builtin": {wrapper: &wrapper{}},
	"exec":    {options: "c l a=", wrapper: &wrapper{optional: true}},

	// git. Options do not show what a repository's configuration starts (filters, textconv, hooks).
	"git": {options: `C= !c= !config-env= !exec-path? p|paginate P|no-pager git-dir= work-tree= namespace= bare
		no-replace-objects no-lazy-fetch literal-pathspecs glob-pathspecs noglob-pathspecs icase-pathspecs
		no-optional-locks list-cmds= html-path man-path info-path h|help v|version`, exact: true, subcommands: true, check: checkGit},
	"git version": {options: "build-options"},
	"git status": {options: `v|verbose s|short b|branch show-stash ahead-behind porcelain? long z|null
		u|untracked-files? ignored? ignore-submodules? column? renames M|find-renames?`,
		exact: true},
	"git add": {options: `n|dry-run v|verbose !i|interactive !p|patch !e|edit f|force u|update renormalize
		N|intent-to-add A|all ignore-removal refresh ignore-errors ignore-missing sparse chmod= pathspec-from-file=
		pathspec-file-nul`, exact: true},
	"git commit": {options: `q|quiet v|verbose F|file= author= date= m|message= c|reedit-message= C|reuse-message=
		fixup= squash= reset-author trailer= s|signoff t|template= !e|edit cleanup= status !S|gpg-sign? a|all
		i|include !interactive !p|patch o|only n|no-verify verify dry-run short branch ahead-behind porcelain long
		z|null amend post-rewrite u|untracked-files? pathspec-from-file= pathspec-file-nul allow-empty
		allow-empty-message`, exact: true},
	"git branch": {options: `v|verbose q|quiet t|track? u|set-upstream-to= unset-upstream color? r|remotes contains=
		abbrev? a|all d|delete D m|move M c|copy C l|list show-current create-reflog !edit-description f|force
		merged? column? sort= points-at= i|ignore-case recurse-submodules format=`, exact: true},
	"git tag": {options: `l|list n? d|delete !v|verify a|annotate m|message= F|file= !e|edit !s|sign cleanup=
		!u|local-user= f|force create-reflog column? contains= merged? sort= points-at= format= color? i|ignore-case`, exact: true},
	"git checkout": {options: `b= B= l guess overlay q|quiet recurse-submodules? progress m|merge conflict= d|detach
		t|track? f|force orphan= overwrite-ignore ignore-other-worktrees 2|ours 3|theirs !p|patch
		ignore-skip-worktree-bits pathspec-from-file= pathspec-file-nul`, exact: true},
	"git switch": {options: `c|create= C|force-create= guess discard-changes q|quiet recurse-submodules? progress
		m|merge conflict= d|detach t|track? f|force orphan= overwrite-ignore ignore-other-worktrees`, exact: true},
	"git restore": {options: `s|source= S|staged W|worktree ignore-unmerged overlay q|quiet recurse-submodules?
		progress m|merge conflict= 2|ours 3|theirs !p|patch ignore-skip-worktree-bits pathspec-from-file=
		pathspec-file-nul`, exact: true},
	"git reset": {options: `q|quiet refresh mixed soft hard merge keep recurse-submodules? !p|patch N|intent-to-add
		pathspec-from-file= pathspec-file-nul`, exact: true},
	"git rm": {options: `n|dry-run q|quiet cached f|force r ignore-unmatch sparse pathspec-from-file=
		pathspec-file-nul`, exact: true},
	"git mv": {options: "v|verbose n|dry-run f|force k sparse", exact: true},
	"git stash": {options: `k|keep-index S|staged !p|patch q|quiet u|include-untracked a|all m|message= index
		only-untracked pathspec-from-file= pathspec-file-nul ` + gitDiff, exact: true},
	"git clean": {options: `q|quiet n|dry-run f|force i|interactive d e|exclude= x X`,
		exact: true, check: checkGitClean},
	"git log":  {options: gitRevisions + gitDiff, numbers: true, exact: true},
	"git show": {options: gitRevisions + gitDiff, numbers: true, exact: true},
	"git reflog": {options: gitRevisions + gitDiff, numbers: true, exact: true,
		check: func(r *parsedArgs) { r.firstOperand("show", "list", "exists", "HEAD") }},
	"git diff": {options: `cached staged merge-base no-index base ours theirs 0 1 2 3 root stdin m v always ` +
		gitDiff, exact: true},
	"git rev-list": {options: gitRevisions + " objects count header disk-usage? use-bitmap-index bisect",
		numbers: true, exact: true},
	"git shortlog": {options: gitRevisions + " c|committer n|numbered s|summary e|email w? group=",
		numbers: true, exact: true},
	"git blame": {options: `incremental b root show-stats progress score-debug f|show-name n|show-number p|porcelain
		line-porcelain c t l s e|show-email w ignore-rev= ignore-revs-file= color-lines color-by-age minimal S=
		contents= C? M? L= abbrev? since= date= reverse first-parent`, exact: true},
	"git grep": {options: `cached no-index untracked exclude-standard recurse-submodules v|invert-match
		i|ignore-case w|word-regexp a|text I !textconv r|recursive max-depth= E|extended-regexp G|basic-regexp
		F|fixed-strings P|perl-regexp n|line-number column h H full-name l|files-with-matches|name-only
		L|files-without-match z|null o|only-matching c|count color? break heading C|context= B|before-context=
		A|after-context= threads= p|show-function W|function-context f= e= and or not q|quiet all-match
		!O|open-files-in-pager? m|max-count=`, numbers: true, exact: true},
	"git ls-files": {options: `z t v f c|cached d|deleted m|modified o|others i|ignored s|stage k|killed directory
		eol empty-directory u|unmerged resolve-undo x|exclude= X|exclude-from= exclude-per-directory=
		exclude-standard full-name recurse-submodules error-unmatch with-tree= abbrev? debug deduplicate sparse
		format=`, exact: true},
	"git ls-tree": {options: `d r t z l|long name-only name-status object-only full-name full-tree format= abbrev?`,
		exact: true},
	"git cat-file": {options: `e p t s allow-unknown-type use-mailmap mailmap batch? batch-check? z Z batch-command?
		batch-all-objects buffer follow-symlinks unordered !textconv !filters path=`, exact: true},
	"git describe": {options: `contains debug all tags long first-parent abbrev? exact-match candidates= match=
		exclude= always dirty? broken?`, exact: true},
	"git name-rev":   {options: `name-only tags refs= exclude= all stdin annotate-stdin undefined always`, exact: true},
	"git merge-base": {options: "a|all octopus independent is-ancestor fork-point", exact: true},
	"git rev-parse":  {options: gitParse, exact: true},
	"git show-ref": {options: `tags heads branches verify exists head d|dereference s|hash? abbrev? q|quiet
		exclude-existing?`, exact: true},
	"git for-each-ref": {options: `s|shell p|perl python tcl count= format= color? sort= points-at= merged?
		contains= ignore-case exclude= omit-empty stdin`, exact: true},
	"git symbolic-ref":  {options: "q|quiet d|delete short recurse m=", exact: true},
	"git hash-object":   {options: "t= w stdin stdin-paths no-filters literally path=", exact: true},
	"git check-ignore":  {options: "q|quiet v|verbose stdin z n|non-matching no-index", exact: true},
	"git check-attr":    {options: "a|all cached stdin z source=", exact: true},
	"git count-objects": {options: "v|verbose H|human-readable", exact: true},
	"git apply": {options: `exclude= include= p= add stat numstat summary check index N|intent-to-add cached
		unsafe-paths apply 3|3way build-fake-ancestor= z C= whitespace= ignore-space-change ignore-whitespace
		R|reverse unidiff-zero reject allow-overlap v|verbose q|quiet inaccurate-eof recount directory= allow-empty`, exact: true},
	"git archive": {options: `l|list format= prefix= add-file= o|output= worktree-attributes v|verbose !remote=
		!exec=`, numbers: true, exact: true},
	"git init": {options: `!template= bare shared? q|quiet separate-git-dir= b|initial-branch= object-format=
		ref-format=`, exact: true},
	"git merge": {options: `n stat summary log? squash commit !e|edit cleanup= ff ff-only rerere-autoupdate
		!verify-signatures !s|strategy= X|strategy-option= m|message= F|file= into-name= v|verbose q|quiet abort
		quit continue allow-unrelated-histories progress !S|gpg-sign? autostash overwrite-ignore signoff verify`, exact: true},
	"git cherry-pick": {options: gitPick + " x ff allow-empty allow-empty-message keep-redundant-commits", exact: true},
	"git revert":      {options: gitPick + " reference", exact: true},
	"git rebase": {options: `onto= keep-base verify q|quiet v|verbose n|no-stat stat signoff
		committer-date-is-author-date reset-author-date ignore-whitespace ff no-ff whitespace= f|force-rebase
		!continue !skip abort quit !edit-todo show-current-patch !apply m|merge !i|interactive rerere-autoupdate
		empty= autosquash update-refs !S|gpg-sign? autostash !x|exec= r|rebase-merges? fork-point !s|strategy=
		X|strategy-option= root reschedule-failed-exec reapply-cherry-picks C=`, exact: true},
	"git remote": {options: "v|verbose all push", exact: true,
		check: func(r *parsedArgs) { r.firstOperand("get-url") }},
	"git config": {options: `global system local worktree f|file= blob= get get-all get-regexp get-urlmatch
		replace-all add unset unset-all rename-section remove-section l|list fixed-value !e|edit get-color
		get-colorbool t|type= bool int bool-or-int bool-or-str path expiry-date z|null name-only includes
		show-origin show-scope default=`, exact: true, check: checkGitConfig},
	"git clone": {options: `v|verbose q|quiet progress reject-shallow n|no-checkout checkout bare mirror l|local
		no-hardlinks s|shared recurse-submodules? recursive? j|jobs= !template= reference= reference-if-able=
		dissociate o|origin= b|branch= !u|upload-pack= depth= shallow-since= shallow-exclude= single-branch tags
		shallow-submodules separate-git-dir= !c|config= server-option= 4|ipv4 6|ipv6 filter= also-filter-submodules
		remote-submodules sparse bundle-uri=`, exact: true, asks: gitReaches},
	"git ls-remote": {options: `q|quiet !upload-pack= t|tags h|heads b|branches refs get-url sort= exit-code symref
		o|server-option= !exec=`, exact: true, asks: gitReaches},
	"git fetch": {options: gitFetch, exact: true, asks: gitReaches},
	"git pull": {options: gitFetch + ` r|rebase? stat log? signoff? squash commit !edit cleanup= ff ff-only verify !verify-signatures autostash !s|strategy= X|strategy-option= !S|gpg-sign?
		allow-unrelated-histories`, exact: true, asks: gitReaches},
	"git push": {options: `v|verbose q|quiet repo= all branches mirror d|delete tags n|dry-run porcelain f|force
		force-with-lease? force-if-includes recurse-submodules= thin !receive-pack= !exec= u|set-upstream progress
		prune verify follow-tags signed? atomic o|push-option= 4|ipv4 6|ipv6`, exact: true, asks: gitReaches},
}

// checkTar adds a risk for archives on other machines, for which tar starts a program.
func checkTar(r *parsedArgs) {
	for _, name := range r.values("f") {
		if strings.Contains(name, ":") && !r.has("force-local") {
			r.addRisk("its archive "+quoted(name)+" names another machine, which tar starts a program to reach", name)
		}
	}
}
