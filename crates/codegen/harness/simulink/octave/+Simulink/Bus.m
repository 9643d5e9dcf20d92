function bus = Bus()
bus = struct('Elements', []);
end
