;; A component that gives an inner one an instance with a record, and exports a function of it that mentions the record.
(component
  (import "t" (instance $t (type $r' (record (field "x" u32))) (export "r" (type $r (eq $r'))) (type $s' (list $r)) (export "s" (type (eq $s')))))
  (component $C
    (import "t" (instance $t (type $r' (record (field "x" u32))) (export "r" (type $r (eq $r'))) ))
    (alias export $t "r" (type $r))
    (import "f" (func $f (param "a" $r)))
    (export "g" (func $f))
    (instance $bag (export "h" (func $f)))
    (export "i" (instance $bag)))
  (alias export $t "r" (type $r))
  (import "f" (func $f (param "a" $r)))
  (instance $c (instantiate $C (with "t" (instance $t)) (with "f" (func $f))))
  (export "g" (func $c "g"))
  (export "i" (instance $c "i"))
)
