#!/bin/sh
# An engine as the limits of its unit meet it: LAB_DOES says in which way.
[ "$1" != --version ] || exec /opt/heddle/bin/heddle-sim "$@"
echo "locked memory: $(ulimit -l) KiB, files: $(ulimit -n), core dumps: $(ulimit -c)"
eat='
rows = []
while True: rows.append(bytearray(b"x") * (8 << 20))'
pin='
import ctypes, mmap
libc = ctypes.CDLL(None, use_errno=True)
memory = mmap.mmap(-1, 64 << 20)
at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
if libc.mlock(ctypes.c_void_p(at), ctypes.c_size_t(64 << 20)) == 0:
    print("pinned 64 MiB", flush=True)
else:
    words = "node-1:8:9 [0] misc/ibvwrap.cc:190 NCCL WARN Call to ibv_reg_mr failed with error "
    raise SystemExit(words + "Cannot allocate memory")'
case ${LAB_DOES:-} in
  eat)
    sleep 5
    exec python3 -c "$eat"
    ;;
  child_eats)
    python3 -c "$eat" &
    exec sleep 3600
    ;;
  pin)
    # As one that loads its weights first.
    sleep 10
    python3 -c "$pin" || exit 1
    ;;
esac
exec /opt/heddle/bin/heddle-sim "$@"
