"""A drone's radio as plain UDP multicast, best effort: hexadecimal states from standard input to a group, and those heard to standard output."""

import argparse
import socket
import sys
import threading

GROUP, PORT = "239.78.0.1", 7878


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", required=True)
    address = parser.parse_known_args()[0].address
    heard = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    heard.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    heard.bind(("", PORT))
    heard.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(GROUP) + socket.inet_aton(address))
    sent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sent.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
    sent.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)

    def hear():
        while True:
            print(heard.recv(2048).hex(), flush=True)

    threading.Thread(target=hear, daemon=True).start()
    for line in sys.stdin:
        sent.sendto(bytes.fromhex(line.strip()), (GROUP, PORT))


main()
