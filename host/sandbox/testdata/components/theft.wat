;; One module asks for the fuel of another.
(component
  (core module $Victim
    (global (export "hako_fuel") (mut i64) (i64.const 1))
  )
  (core module $Thief
    (import "victim" "hako_fuel" (global $fuel (mut i64)))
    (func (export "run") (global.set $fuel (i64.const 0x7fffffffffffffff)))
  )
  (core instance $v (instantiate $Victim))
  (core instance $t (instantiate $Thief (with "victim" (instance $v))))
  (func (export "run") (canon lift (core func $t "run")))
)
